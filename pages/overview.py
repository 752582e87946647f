"""What there is to see, in one figure and a few questions."""

import streamlit as st

from dashboard.components.chart import chart
from dashboard.components.export import export_menu
from dashboard.components.provenance import provenance_footer
from dashboard.figures import kernel_drift as figures
from dashboard.gallery import gallery_result
from dashboard.navigation import PAGES, enter

PAGE = enter("overview")
st.title("When does a wide network become linear?", anchor=False)
st.markdown(
    "A network whose tangent kernel stays fixed while it learns is a linear model in its weights. "
    "Wide networks with a linear output come ever closer to that; with a softmax or swish output they never do."
)
result = gallery_result("liu-fig1-left")
picture, questions = st.columns([3, 2], gap="large", vertical_alignment="center")
with questions:
    st.subheader("Questions to begin with", anchor=False)
    for entry in PAGES:
        if entry.question:
            st.page_link(entry.path, label=entry.question, icon=entry.icon)
if result is not None:
    with picture:
        figure, words = figures.change_against_width(result.points), figures.takeaway(result.points)
        chart(figure, f"{PAGE}.against_width", words, figures.width_rows(result.points))
        export_menu(PAGE, "When does a wide network become linear?", result.spec, result, {words: figure})
    provenance_footer(result)
