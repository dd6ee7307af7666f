#!/bin/sh
# Builds the image where no registry can be reached, as root on Debian: the base from Debian's packages by mmdebstrap, the image by buildah.
# sh deploy/build-image.sh [TAG], after npm run build:binary
set -eu
cd "$(dirname "$0")/.."
tag=${1:-plants}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What gcr.io/distroless/base-nossl has.
mmdebstrap --quiet --variant=extract --include=ca-certificates,libc6,netbase,tzdata \
  --customize-hook='cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1/etc/ssl/certs/ca-certificates.crt"' \
  --customize-hook='echo "root:x:0:0:root:/root:/sbin/nologin
nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin" > "$1/etc/passwd"' \
  --customize-hook='echo "root:x:0:
nonroot:x:65532:" > "$1/etc/group"' \
  --customize-hook='install -d -o 65532 -g 65532 -m 700 "$1/home/nonroot"' \
  bookworm "$folder/base.tar"

container=$(buildah from scratch)
buildah add --quiet "$container" "$folder/base.tar" / > /dev/null
buildah commit --quiet --rm "$container" "$tag-base" > /dev/null
buildah build --quiet --isolation chroot --format docker --build-arg "BASE=localhost/$tag-base" --file deploy/Dockerfile --tag "$tag" release
