from .architectures import Adapted as Adapted
from .architectures import Assembly as Assembly
from .architectures import Attention as Attention
from .architectures import Bottleneck as Bottleneck
from .architectures import Composed as Composed
from .architectures import ConvNet as ConvNet
from .architectures import DAGNetwork as DAGNetwork
from .architectures import DenseNet as DenseNet
from .architectures import FullyConnected as FullyConnected
from .architectures import Layer as Layer
from .architectures import Mirrored as Mirrored
from .architectures import MixedNet as MixedNet
from .architectures import Network as Network
from .architectures import PreActivations as PreActivations
from .architectures import ResNet as ResNet
from .architectures import ScaledNetwork as ScaledNetwork
from .architectures import Subtracted as Subtracted
from .architectures import Transformer as Transformer
from .architectures import subtract_initial_output as subtract_initial_output
from .architectures import width_mesh as width_mesh

__all__: list[str]
