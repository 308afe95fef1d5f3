#!/bin/sh
# All that awaits a GPU, in the order of its value, until the minutes are over; the same call goes on where it was.
#     sh experiments/gpu/run.sh CORPORA --minutes 60
#     sh experiments/gpu/run.sh CORPORA --device cpu --quick    # tries everything, in minutes, without a GPU
set -eu
cd "$(dirname "$0")/../.."
exec "${PYTHON:-python}" experiments/gpu/run.py "$@"
