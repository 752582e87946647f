"""Uploaded data: bytes of a file → its content → chosen inputs and targets → arrays kept by digest.
Free of JAX.
"""

from linearity_lab.data.uploads._archive import DEFAULT_LIMITS, Limits
from linearity_lab.data.uploads._candidate import (
    TASKS,
    Arrays,
    Candidate,
    Choices,
    FileColumn,
    HeaderRule,
    ImageEntry,
    ImageFolders,
    Table,
    Task,
    suggested_choices,
)
from linearity_lab.data.uploads._clean import Cleaned, MissingValues, clean_upload
from linearity_lab.data.uploads._images import BACKGROUNDS
from linearity_lab.data.uploads._keeping import (
    DIGEST,
    EXAMPLE,
    HOW_TO_BRING,
    MAX_KEPT_BYTES,
    Keeper,
    MissingUpload,
    UploadShapes,
    forget_upload,
    keep_upload,
    read_upload,
    upload_digest,
    upload_shapes,
)
from linearity_lab.data.uploads._parse import parse_upload
from linearity_lab.data.uploads._tables import BadLine
from linearity_lab.data.uploads._words import described
