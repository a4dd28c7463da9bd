# clash in a container: docker build -t clash . && docker run --rm -v "$PWD:/work" clash eval --dry-run
# Keys go in by name and stay out of the image: docker run --rm -e OPENROUTER_API_KEY …
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.12-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir --no-index --find-links /wheels clash-eval
RUN useradd --create-home clash
USER clash
WORKDIR /work
ENTRYPOINT ["clash"]
CMD ["--help"]
