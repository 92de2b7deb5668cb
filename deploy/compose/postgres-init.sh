#!/bin/bash
# The role of the service owns its database, and is neither superuser nor above row-level security.
set -euo pipefail
psql -v ON_ERROR_STOP=1 --username postgres --set password="$(cat "$SERVICE_PASSWORD_FILE")" <<'SQL'
CREATE ROLE accession LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE accession OWNER accession;
SQL
