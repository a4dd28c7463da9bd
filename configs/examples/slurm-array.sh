#!/bin/bash
# Judge in eight Slurm tasks, then join them: sbatch slurm-array.sh
# Each task writes runs/night-I-of-8 on the shared file system. A task that is requeued goes on where
# it stopped. OPENROUTER_API_KEY must be in the environment of the job.
#SBATCH --job-name=clash
#SBATCH --array=1-8
#SBATCH --requeue
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH --time=04:00:00
set -euo pipefail

shard=$SLURM_ARRAY_TASK_ID
shards=${SHARDS:-8}  # as many as --array has; a task submitted again alone (--array=3) keeps them
run=night-$shard-of-$shards

if [ -e "runs/$run/manifest.json" ]; then
  clash resume "$run" --quiet
else
  clash eval prompts.yaml --shard "$shard/$shards" --run-id "$run" --max-cost 40 --yes --quiet
fi

# When all tasks have ended, on the login node:
#   clash merge runs/night-*-of-8 --run-id night && clash verify night
