#!/usr/bin/env bash
# Makes the secrets of the Compose file, once. Keep a copy of secrets/key_encryption_key elsewhere: without it nothing can be read.
set -euo pipefail
cd "$(dirname "$0")"
[ ! -e secrets ] || { echo "secrets/ is there already; nothing is changed" >&2; exit 1; }
umask 077
mkdir secrets
random() { od -An -N "$1" -tx1 /dev/urandom | tr -d ' \n'; }
random 32 >secrets/admin_token
random 24 >secrets/postgres_password
random 24 >secrets/database_password
printf 'postgres://accession:%s@postgres/accession?sslmode=disable' "$(cat secrets/database_password)" >secrets/database_url
head -c 32 /dev/urandom | base64 >secrets/key_encryption_key
printf '[default]\naws_access_key_id = accession\naws_secret_access_key = %s\n' "$(random 24)" >secrets/storage_credentials
# Compose mounts these files as they are: the service's account in the containers must read them.
chmod 0444 secrets/*
chmod 0711 secrets
echo "made $(pwd)/secrets; the admin token is in secrets/admin_token"
