#!/bin/sh
# A Ray cluster by hand, and a run on it. Every machine needs the same versions of Python, Ray and
# clash (pip install 'clash-eval[ray]'), the keys in its environment, and a network that nobody else
# can reach: who can connect to a Ray cluster can run code on it.
#
#   ray-cluster.sh head                 on the first machine, which keeps the run folder
#   ray-cluster.sh node HEAD_ADDRESS    on each of the others
#   ray-cluster.sh eval                 on the first machine
#
# Before that, put the same token on all of them: `ray get-auth-token --generate` writes
# ~/.ray/auth_token on the first, and the file is copied to the others.
set -eu
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
case "${1:?head, node or eval}" in
head) ray start --head --port=6379 --num-cpus=0 --include-dashboard=false ;;
node) ray start --address="${2:?address of the first machine}:6379" --num-cpus=1 ;;
eval)
  if [ -e runs/night/manifest.json ]; then
    clash resume night --ray auto
  else
    clash eval prompts.yaml --run-id night --ray auto --max-cost 40 --yes
  fi
  ;;
esac
