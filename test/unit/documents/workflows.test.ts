import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { versions } from '../../../bench/nodes.mjs'
import packageJson from '../../../package.json'
import { blocksOf, pages } from '../../helpers/documents.js'
import { temporaryFolder } from '../../helpers/temporary.js'

interface Workflow {
  jobs: Record<string, Job>
}

interface Job {
  needs?: string
  permissions?: Record<string, string>
  strategy?: { matrix: object }
  steps?: { uses?: string; run?: string; with?: Record<string, string> }[]
}

const folder = join(import.meta.dirname, '../../../.github/workflows')
const texts = new Map(
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
)
const workflows = [...texts].map(([file, text]) => ({ file, ...(parse(text) as Workflow) }))
const steps = workflows.flatMap(({ jobs }) => Object.values(jobs).flatMap((job) => job.steps ?? []))

/** The parser of GitHub imports JSON as only bundlers can. */
async function loadParser(): Promise<typeof import('@actions/workflow-parser')> {
  const bundle = await rolldown({ input: '@actions/workflow-parser', platform: 'node' })
  const file = join(temporaryFolder(), 'parser.cjs')
  await bundle.write({ file, format: 'cjs' })
  return createRequire(file)(file)
}

/** Finds what GitHub itself would reject. */
async function findFaults(name: string, content: string): Promise<string[]> {
  const parser = await loadParser()
  const trace = new parser.NoOperationTraceWriter()
  const { context, value } = parser.parseWorkflow({ name, content }, trace)
  if (value !== undefined) await parser.convertWorkflowTemplate(context, value)
  return context.errors.getErrors().map(({ message }) => message)
}

test.each([...texts])('%s has no fault that the parser of GitHub finds', async (name, text) => {
  expect(await findFaults(name, text)).toEqual([])
})

test.each([
  ['an unknown key', 'timeout-minutes', 'timeout-minuets'],
  ['an unknown variable', 'github.token', 'githb.token'],
  ['a job that is not there', 'needs: build', 'needs: bild'],
  ['an unknown right', 'packages: write', 'packages: wrote'],
  ['a step that does nothing', '- run: npm ci', '- rum: npm ci'],
])('the parser of GitHub finds %s', async (_, correct, wrong) => {
  const text = texts.get('release.yml') ?? ''
  expect(text).toContain(correct)
  expect(await findFaults('release.yml', text.replace(correct, wrong))).not.toEqual([])
})

test('a release uses no token of npm, and what installs packages can sign and publish nothing', () => {
  const jobs = workflows.find(({ file }) => file === 'release.yml')?.jobs ?? {}
  expect(texts.get('release.yml')).not.toMatch(/secrets\.|NODE_AUTH_TOKEN|NPM_TOKEN/)
  const canWrite = Object.entries(jobs).filter(([, { permissions = {} }]) =>
    Object.values(permissions).includes('write'),
  )
  expect(canWrite.map(([name]) => name)).toEqual(['attest', 'npm', 'image', 'files'])
  const runs = canWrite.flatMap(([, { steps: own = [] }]) => own.map(({ run = '' }) => run))
  expect(runs.filter((run) => /npm (?:ci|i|install|run|exec|x)\b|npx/.test(run))).toEqual([])
})

test('a release attests its executables before it publishes anything, and its image', () => {
  const jobs = workflows.find(({ file }) => file === 'release.yml')?.jobs ?? {}
  const findSubject = (name: string) =>
    jobs[name]?.steps?.find(({ uses }) => uses?.startsWith('actions/attest-build-provenance@'))
      ?.with
  expect(findSubject('attest')).toEqual({ 'subject-checksums': 'release/SHA256SUMS' })
  expect(findSubject('image')).toMatchObject({ 'push-to-registry': true })
  const needs = ['npm', 'image', 'files'].map((name) => jobs[name]?.needs)
  expect(needs).toEqual(['attest', 'npm', 'npm'])
})

test('the weekly audit includes the packages that are bundled', () => {
  const audits = steps.flatMap(({ run = '' }) => run.match(/npm audit.*/g) ?? [])
  expect(audits).toEqual(['npm audit --package-lock-only --include=dev'])
})

test('the parser of GitHub finds no fault in the workflow of the recipes', async () => {
  const blocks = blocksOf(pages.get('docs/recipes.md') ?? '')
  const workflow = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)
  expect(workflow).toHaveLength(1)
  expect(await findFaults('plants.yml', workflow[0] ?? '')).toEqual([])
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
