#!/usr/bin/env bash
# What is under deploy/, looked at by the tools of those who will read it: promtool, systemd-analyze, helm, docker compose.
# Not part of `make lint`: helm is built from its module (some minutes, once), and promtool is a package of 19 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
helm_version=v3.22.0
kubernetes=1.31.0 # what the chart is rendered for

bad=0
complain() { printf 'lint-deploy: %s\n' "$*" >&2; bad=1; }
has() { command -v "$1" >/dev/null || { complain "$1 is missing: $2"; return 1; }; }

if has promtool "apt-get install --no-install-recommends prometheus, or put promtool on the PATH"; then
  promtool check rules deploy/prometheus/alerts.yaml || bad=1
  promtool test rules deploy/prometheus/alerts_test.yaml || bad=1
fi

if has systemd-analyze "it is in Debian's systemd"; then
  said=$(systemd-analyze verify --man=no deploy/systemd/accession.service 2>&1 | grep -v 'is not executable: No such file' || true)
  [ -z "$said" ] || complain "$said"
  systemd-analyze security --offline=true --threshold=20 --no-pager deploy/systemd/accession.service >/dev/null || complain "the unit is exposed: systemd-analyze security"
fi

mkdir -p .cache/bin
helm=.cache/bin/helm-$helm_version
[ -x "$helm" ] || { GOFLAGS= GOBIN="$PWD/.cache/bin" go install "helm.sh/helm/v3/cmd/helm@$helm_version" && mv .cache/bin/helm "$helm"; }
chart=deploy/helm/accession
least=(--kube-version "$kubernetes" --set settings.BASE_URL=https://custody.example --set 'settings.BLOBS=s3://custody/staging' --set 'settings.QUARANTINE=s3://custody-quarantine/copies')
"$helm" lint --strict "$chart" "${least[@]}" || bad=1
"$helm" template accession "$chart" "${least[@]}" >/dev/null || bad=1
"$helm" template accession "$chart" "${least[@]}" --set worker.replicas=2 --set metrics.serviceMonitor=true --set networkPolicy.enabled=true >/dev/null || bad=1
if "$helm" template accession "$chart" --kube-version "$kubernetes" >/dev/null 2>&1; then complain "the chart renders without the settings it needs"; fi

for script in deploy/compose/*.sh; do
  bash -n "$script" || complain "$script does not parse"
done
if docker compose version >/dev/null 2>&1; then
  docker compose -f deploy/compose/compose.yaml config --quiet || bad=1
else
  echo "lint-deploy: docker compose is not here; deploy/compose was read by the tests alone" >&2
fi
exit $bad
