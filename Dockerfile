# CPU:  docker build -t linearity-lab . && docker run --rm -p 8501:8501 linearity-lab
# GPU:  docker build -t linearity-lab --build-arg ACCELERATOR=cuda13 . && docker run --rm --gpus all -p 8501:8501 linearity-lab
FROM python:3.11-slim AS build
# Empty for the CPU; cuda12 or cuda13 for an NVIDIA GPU (the driver comes from the host).
ARG ACCELERATOR=""
WORKDIR /build
COPY requirements.txt .
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir -r requirements.txt ${ACCELERATOR:+"jax[${ACCELERATOR}]"}

FROM python:3.11-slim
RUN useradd --create-home --uid 1000 app
COPY --from=build /opt/venv /opt/venv
ENV PATH="/opt/venv/bin:$PATH" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XLA_PYTHON_CLIENT_PREALLOCATE=false
WORKDIR /app
# .dockerignore lets in only what the dashboard runs on.
COPY . .
USER 1000
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501", "--server.headless=true"]
