#!/usr/bin/env bash
# Makes release archives and Debian packages with their bills of materials and checksums, in the folder $1 (default: bin/packages).
# The same commit, Go and dpkg give the same bytes, whatever the folder. ARCHITECTURES (default: "amd64 arm64") says for what;
# VERSION what the program says of itself (default: what git describes).
set -euo pipefail
out=$(mkdir -p "${1:-$(dirname "$0")/../bin/packages}" && cd "${1:-$(dirname "$0")/../bin/packages}" && pwd)
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin
export LC_ALL=C TZ=UTC GOFLAGS="-mod=readonly -buildvcs=false" CGO_ENABLED=0 GOOS=linux
# Settings of this machine must not change what is made.
unset GOARCH GOAMD64 GOARM64 GOEXPERIMENT GOTOOLCHAIN XZ_OPT XZ_DEFAULTS GZIP TAR_OPTIONS
umask 022

fail() { printf 'package: %s\n' "$*" >&2; exit 1; }
for program in git go dpkg-deb tar gzip sha256sum; do
  command -v $program >/dev/null || fail "$program is missing; dpkg-deb is in Debian's dpkg, sha256sum in coreutils"
done

version=${VERSION:-$(git describe --tags --always --dirty)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# What dpkg can compare: a tag without its v, or before all of them the commit's day and its name.
case $version in
  v[0-9]*) debian=$(printf '%s' "${version#v}" | tr - '~' | sed -E 's/~([0-9]+)~g/+\1.g/; s/~dirty/+dirty/') ;;
  *) debian=0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).${version//-/+} ;;
esac

work=$(mktemp -d "$out/.making.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
# Nothing of an earlier version stays beside the new checksums.
rm -f "$out"/accession_* "$out"/SHA256SUMS

go -C tools build -trimpath -o "$work/release" ./release
# grpcnotrace: without the pages of golang.org/x/net/trace, whose templates keep every method of every type linked (10 MiB).
build() { # architecture
  [ -d "$work/$1" ] || mkdir "$work/$1"
  [ -x "$work/$1/accession" ] || GOARCH=$1 go build -tags grpcnotrace -trimpath -ldflags "-s -w -X main.version=$version" -o "$work/$1/accession" ./cmd/accession
}

# The page and the completions are the program's own; it prints them where it can run.
build "$(go env GOHOSTARCH)"
ln "$work/$(go env GOHOSTARCH)/accession" "$work/here"
mkdir "$work/texts"
"$work/here" man >"$work/texts/accession.1"
for shell in bash zsh fish; do "$work/here" completion $shell >"$work/texts/accession.$shell"; done

archive() { # folder, file: every byte of it the same wherever it is made
  tar --create --directory "$(dirname "$1")" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u+rw,go=rX "$(basename "$1")" | gzip -6 -n >"$2"
}

for arch in ${ARCHITECTURES:-amd64 arm64}; do
  made=$work/$arch
  build "$arch"
  "$work/release" -binary "$made/accession" -arch "$arch" -version "$version" -epoch "$SOURCE_DATE_EPOCH" -sbom "$made/sbom.cdx.json" -licenses "$made/licenses"

  # The archive: everything in one folder.
  folder=$made/accession-$version
  mkdir -p "$folder"/{completions,systemd}
  install -m 0755 "$made/accession" "$folder/accession"
  install -m 0644 LICENSE README.md CHANGELOG.md "$work/texts/accession.1" "$made/sbom.cdx.json" "$folder/"
  install -m 0644 "$work/texts"/accession.{bash,zsh,fish} "$folder/completions/"
  install -m 0644 deploy/systemd/accession.* "$folder/systemd/"
  cp -R "$made/licenses" "$folder/licenses"
  archive "$folder" "$out/accession_${version}_linux_$arch.tar.gz"
  install -m 0644 "$made/sbom.cdx.json" "$out/accession_${version}_linux_$arch.cdx.json"

  # The Debian package: everything in the system's places.
  root=$made/debian
  doc=$root/usr/share/doc/accession
  install -D -m 0755 "$made/accession" "$root/usr/bin/accession"
  install -D -m 0644 deploy/systemd/accession.service "$root/usr/lib/systemd/system/accession.service"
  install -D -m 0644 deploy/systemd/accession.sysusers "$root/usr/lib/sysusers.d/accession.conf"
  install -d -m 0750 "$root/etc/accession"
  install -m 0640 deploy/systemd/accession.yaml "$root/etc/accession/accession.yaml"
  install -D -m 0644 "$work/texts/accession.bash" "$root/usr/share/bash-completion/completions/accession"
  install -D -m 0644 "$work/texts/accession.zsh" "$root/usr/share/zsh/vendor-completions/_accession"
  install -D -m 0644 "$work/texts/accession.fish" "$root/usr/share/fish/vendor_completions.d/accession.fish"
  install -d "$root/usr/share/man/man1" "$doc"
  gzip -9 -n <"$work/texts/accession.1" >"$root/usr/share/man/man1/accession.1.gz"
  gzip -9 -n <CHANGELOG.md >"$doc/changelog.gz"
  install -m 0644 README.md deploy/debian/copyright "$made/sbom.cdx.json" "$doc/"
  cp -R "$made/licenses" "$doc/licenses"
  size=$(du -k -s --apparent-size "$root" | cut -f1)
  install -d "$root/DEBIAN"
  sed -e "s/@VERSION@/$debian/; s/@ARCH@/$arch/; s/@SIZE@/$size/" deploy/debian/control >"$root/DEBIAN/control"
  install -m 0755 deploy/debian/{postinst,prerm,postrm} "$root/DEBIAN/"
  echo /etc/accession/accession.yaml >"$root/DEBIAN/conffiles"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
  # dpkg-deb keeps no time later than SOURCE_DATE_EPOCH; all of these are later.
  dpkg-deb --root-owner-group -Zzstd -z12 --threads-max=1 --build "$root" "$out/accession_${debian}_$arch.deb" >/dev/null
done

(cd "$out" && sha256sum accession_* >SHA256SUMS)
(cd "$out" && ls -l --block-size=1 accession_* | awk '{ printf "  %11d  %s\n", $5, $9 }')
