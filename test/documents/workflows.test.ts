import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import packageJson from '../../package.json'
import { findBlocks, pages } from '../helpers/expect/documents.js'
import { createTemporaryFolder } from '../helpers/sandbox/temporary-folder.js'

interface Workflow {
  permissions: Record<string, string>
  jobs: Record<string, Job>
}

interface Job {
  container?: string
  permissions?: Record<string, string>
  steps?: { uses?: string; run?: string }[]
}

const folder = join(import.meta.dirname, '../../.github/workflows')
const texts = new Map(
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
)
const workflows = [...texts].map(([file, text]) => ({ file, ...(parse(text) as Workflow) }))
const steps = workflows.flatMap(({ jobs }) => Object.values(jobs).flatMap((job) => job.steps ?? []))

/** The parser of GitHub imports JSON as only bundlers can. */
async function loadParser(): Promise<typeof import('@actions/workflow-parser')> {
  const bundle = await rolldown({ input: '@actions/workflow-parser', platform: 'node' })
  const file = join(createTemporaryFolder(), 'parser.cjs')
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

test('a release uses no token of npm, and what installs packages can sign and publish nothing', () => {
  expect(texts.get('release.yml')).not.toMatch(/secrets\.|NODE_AUTH_TOKEN|NPM_TOKEN/)
  const { jobs = {} } = workflows.find(({ file }) => file === 'release.yml') ?? {}
  const canWrite = Object.values(jobs).filter(({ permissions = {} }) =>
    Object.values(permissions).includes('write'),
  )
  const runs = canWrite.flatMap(({ steps: own = [] }) => own.map(({ run = '' }) => run))
  expect(runs.filter((run) => /npm (?:ci|i|install|run|exec|x)\b|npx/.test(run))).toEqual([])
})

test('the pages name the repository that package.json names', () => {
  const [, repository = ''] =
    /^git\+https:\/\/github\.com\/(.+)\.git$/.exec(packageJson.repository.url) ?? []
  const named = [...pages.values()].flatMap((page) =>
    Array.from(page.matchAll(/(?:ghcr\.io\/|--repo )([\w.-]+\/[\w-]+)/g), ([, name = '']) => name),
  )
  expect(named.length).toBeGreaterThan(3)
  const others = named.filter((name) => name.toLowerCase() !== repository.toLowerCase())
  expect(others).toEqual([])
})

test('the parser of GitHub finds no fault in the workflow of the recipes', async () => {
  const blocks = findBlocks(pages.get('docs/recipes.md') ?? '')
  const workflow = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)
  expect(workflow).toHaveLength(1)
  expect(await findFaults('plants.yml', workflow[0] ?? '')).toEqual([])
})

test('each workflow names its actions by the hash of a commit, with its tag', () => {
  const named = [...texts.values()].flatMap((text) =>
    Array.from(text.matchAll(/^[ -]*uses: (?!\.\/)(.*)/gm), ([, uses = '']) => uses),
  )
  expect(named.filter((uses) => !/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(uses))).toEqual([])
})

test('each image that is run or built upon is named with its tag and its digest', () => {
  const jobs = workflows.flatMap((workflow) => Object.values(workflow.jobs))
  const dockerfile = readFileSync(join(folder, '../../deploy/Dockerfile'), 'utf8')
  const bases = Array.from(dockerfile.matchAll(/^FROM (.*)$/gm), ([, image = '']) => image)
  const images = [...jobs.flatMap(({ container = [] }) => container), ...bases]
  expect(images.length).toBeGreaterThan(1)
  expect(images.filter((image) => !/^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/.test(image))).toEqual(
    [],
  )
})

test('neither a workflow nor .ci/run runs the scripts of packages', () => {
  const run = readFileSync(join(folder, '../../.ci/run'), 'utf8')
  const commands = [...steps.map((step) => step.run ?? ''), run].join('\n')
  const installs = commands.match(/^npm (?:ci|i|install)\b.*/gm)
  expect(new Set(installs)).toEqual(new Set(['npm ci --ignore-scripts']))
})
