# mirblab in a container: CPU only, JupyterLab on start, everything for the bundled notebooks inside, no network needed later.
#   docker build --tag mirblab .
#   docker run --rm --publish 127.0.0.1:8888:8888 mirblab     # then open the address that it prints
# Keep your own figures with --volume "$PWD/figures:/home/reader/lab/figures".
FROM python:3.11-slim-bookworm

ARG UID=1000
RUN useradd --create-home --uid "${UID}" reader && mkdir /home/reader/lab && chown reader:reader /home/reader/lab
WORKDIR /home/reader/lab
ENV NUMBA_CACHE_DIR=/home/reader/.numba PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1

# uv knows where torch's CPU builds lie; everything else is what requirements.lock says
COPY binder/requirements.txt requirements.lock ./
RUN pip install --no-cache-dir --requirement requirements.txt \
    && uv pip install --system --no-cache --torch-backend=cpu --requirement requirements.lock \
    && rm requirements.txt

COPY --chown=reader:reader . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable .

USER reader
RUN python binder/warm.py && mirblab lessons --out lessons

EXPOSE 8888
CMD ["jupyter", "lab", "--no-browser", "--log-level=WARN", "--ip=0.0.0.0", "--port=8888", "--ServerApp.root_dir=.", "--KernelManager.transport_encryption=auto", "--LabApp.app_settings_dir=.jupyter", "--LabApp.default_url=/lab/tree/START.md"]
