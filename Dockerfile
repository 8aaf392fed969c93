# The image of a release, of the programs that `make release` built:
#
#   docker buildx build --platform linux/amd64,linux/arm64 -t perflab:v0.3.0 .
#   docker run --rm --network host -v "$PWD:/work" perflab:v0.3.0 bench --base-url http://127.0.0.1:8000
#
# There is nothing in it but the program and the certificates by which it trusts servers. What starts
# engines needs a machine or a Docker socket: an image holds none.
FROM debian:stable-slim AS certificates
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && mkdir -m 1777 /empty

FROM scratch
ARG TARGETARCH
COPY --from=certificates /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=certificates /empty /tmp
COPY --chmod=0755 dist/bin/perflab_linux_${TARGETARCH} /usr/bin/perflab
ENV PATH=/usr/bin HOME=/tmp
WORKDIR /work
ENTRYPOINT ["perflab"]
