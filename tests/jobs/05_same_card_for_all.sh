#!/usr/bin/env bash
# Starts a rank with one visible card, and means the card of its LOCAL_RANK.
set -euo pipefail
export TOPS_VISIBLE_DEVICES=3
exec "$@"
