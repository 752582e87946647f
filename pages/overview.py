"""What there is to see, in one figure and a few questions."""

import streamlit as st

from dashboard.components.chart import chart
from dashboard.components.provenance import provenance_footer
from dashboard.figures import kernel_drift as figures
from dashboard.gallery import gallery_result
from dashboard.navigation import enter

PAGE = enter("overview")
QUESTIONS = {
    "Does the kernel stop moving as the width grows?": {},
    "What happens during training at width 10⁴?": {"preset": "liu-fig1-right"},
    "Does another nonlinear output change the answer?": {"outputs": "linear,tanh,sigmoid,leaky_softplus"},
}

st.title("When does a wide network become linear?", anchor=False)
st.markdown(
    "A network whose tangent kernel stays fixed while it learns is a linear model in its weights. "
    "Wide networks with a linear output come ever closer to that; with a softmax or swish output they never do."
)
result = gallery_result("liu-fig1-left")
picture, questions = st.columns([3, 2], gap="large", vertical_alignment="center")
with questions:
    st.subheader("Questions to begin with", anchor=False)
    for question, query in QUESTIONS.items():
        st.page_link("pages/kernel_drift.py", label=question, icon=":material/arrow_forward:", query_params=query)
    st.page_link(
        "pages/dynamics.py", label="Does the network move like its linear model?", icon=":material/compare_arrows:"
    )
    st.page_link("pages/early_time.py", label="What does a network learn first?", icon=":material/schedule:")
    st.page_link("pages/architectures.py", label="Which architectures become linear?", icon=":material/account_tree:")
if result is not None:
    with picture:
        figure = figures.change_against_width(result.points)
        chart(figure, f"{PAGE}.against_width", figures.takeaway(result.points), figures.width_rows(result.points))
    provenance_footer(result)
