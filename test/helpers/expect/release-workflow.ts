import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { parse } from 'yaml'

interface Workflow {
  jobs: Record<string, { steps?: { name?: string; run?: string }[] }>
}

const path = join(import.meta.dirname, '../../../.github/workflows/release.yml')

/** Runs a step of the workflow that releases, found by its name, as GitHub's runners do. */
export async function runReleaseStep(name: string, cwd: string, env: Record<string, string> = {}) {
  const { jobs } = parse(readFileSync(path, 'utf8')) as Workflow
  const steps = Object.values(jobs).flatMap((job) => job.steps ?? [])
  const script = steps.find((step) => step.name === name)?.run
  if (script === undefined) throw new Error(`release.yml has no step "${name}" with commands`)
  const options = { cwd, env, reject: false }
  const { exitCode, stdout, stderr } = await execa(
    'bash',
    ['-eo', 'pipefail', '-c', script],
    options,
  )
  return { exitCode, stdout, stderr }
}
