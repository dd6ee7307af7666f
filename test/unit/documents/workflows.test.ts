import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { versions } from '../../../bench/nodes.mjs'
import packageJson from '../../../package.json'
import { findBlocks, pages } from '../../helpers/expect/documents.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

interface Workflow {
  permissions: Record<string, string>
  jobs: Record<string, Job>
}

interface Job {
  needs?: string
  environment?: string
  container?: string
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

/** The jobs of a workflow. */
function findJobs(file: string): Record<string, Job> {
  return workflows.find((workflow) => workflow.file === file)?.jobs ?? {}
}

test('each job of a workflow has only the rights that it uses', () => {
  const rights = workflows.flatMap(({ file, permissions, jobs }) =>
    Object.entries(jobs).map(([name, job]) => [`${file}: ${name}`, job.permissions ?? permissions]),
  )
  const read = { contents: 'read' }
  const sign = { 'id-token': 'write', attestations: 'write' }
  expect(Object.fromEntries(rights)).toEqual({
    'audit.yml: audit': read,
    'ci.yml: everything': read,
    'ci.yml: node': read,
    'ci.yml: file': read,
    'release.yml: version': read,
    'release.yml: check': read,
    'release.yml: build': read,
    'release.yml: run': {},
    'release.yml: attest': sign,
    'release.yml: npm': { 'id-token': 'write' },
    'release.yml: image': { ...read, ...sign, packages: 'write' },
    'release.yml: files': { contents: 'write' },
  })
})

test('a release uses no token of npm, and what installs packages can sign and publish nothing', () => {
  expect(texts.get('release.yml')).not.toMatch(/secrets\.|NODE_AUTH_TOKEN|NPM_TOKEN/)
  const canWrite = Object.values(findJobs('release.yml')).filter(({ permissions = {} }) =>
    Object.values(permissions).includes('write'),
  )
  const runs = canWrite.flatMap(({ steps: own = [] }) => own.map(({ run = '' }) => run))
  expect(runs.filter((run) => /npm (?:ci|i|install|run|exec|x)\b|npx/.test(run))).toEqual([])
})

test('a release checks, builds, runs and attests its files before it publishes any', () => {
  const jobs = findJobs('release.yml')
  const needs = Object.entries(jobs).map(([name, job]) => [name, job.needs])
  expect(Object.fromEntries(needs)).toEqual({
    version: undefined,
    check: 'version',
    build: 'check',
    run: 'build',
    attest: 'run',
    npm: 'attest',
    image: 'npm',
    files: 'npm',
  })
  expect(texts.get('release.yml')).toContain('uses: ./.github/workflows/ci.yml')
  const files = jobs['run']?.strategy?.matrix
  expect(JSON.stringify(files)).toMatch(/linux-x64.*linux-arm64.*windows-x64.*windows-arm64/)
})

test('a release attests all files, and the image of each processor as well as their index', () => {
  const jobs = findJobs('release.yml')
  const findSubjects = (name: string) =>
    (jobs[name]?.steps ?? [])
      .filter(({ uses }) => uses?.startsWith('actions/attest-build-provenance@'))
      .map((step) => step.with)
  expect(findSubjects('attest')).toEqual([{ 'subject-checksums': 'release/SHA256SUMS' }])
  const image = {
    'subject-name': `\${{ steps.push.outputs.name }}`,
    'push-to-registry': true,
    'create-storage-record': false,
  }
  expect(findSubjects('image')).toEqual(
    ['amd64', 'arm64', 'index'].map((output) => ({
      ...image,
      'subject-digest': `\${{ steps.push.outputs.${output} }}`,
    })),
  )
})

test('the job that publishes the package waits for a reviewer, and publishes the attested file', () => {
  const { environment, steps: own = [] } = findJobs('release.yml')['npm'] ?? {}
  expect(environment).toBe('npm')
  const publish = 'npm publish ./release/plant-store-*.tgz --access public --ignore-scripts'
  expect(own.flatMap(({ run = [] }) => run)).toEqual([publish])
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
  const actions = [...new Set(named)].map((uses) => uses.replace(/@.*# v(\d+)\..*/, ' $1'))
  expect(actions.toSorted()).toEqual([
    'actions/attest-build-provenance 4',
    'actions/checkout 7',
    'actions/download-artifact 8',
    'actions/setup-node 7',
    'actions/upload-artifact 7',
  ])
})

test('each image that is run or built upon is named with its tag and its digest', () => {
  const jobs = workflows.flatMap((workflow) => Object.values(workflow.jobs))
  const dockerfile = readFileSync(join(folder, '../../deploy/Dockerfile'), 'utf8')
  const bases = Array.from(dockerfile.matchAll(/^FROM (.*)$/gm), ([, image = '']) => image)
  const images = [...jobs.flatMap(({ container = [] }) => container), ...bases]
  expect(images).toHaveLength(2)
  expect(images.filter((image) => !/^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/.test(image))).toEqual(
    [],
  )
  const settings = parse(readFileSync(join(folder, '../dependabot.yml'), 'utf8'))
  const updates: { 'package-ecosystem': string; directory: string }[] = settings.updates
  expect(updates.map((update) => [update['package-ecosystem'], update.directory])).toEqual([
    ['npm', '/'],
    ['github-actions', '/'],
    ['docker', '/deploy'],
  ])
})

test('neither a workflow nor .ci/run runs the scripts of packages', () => {
  const run = readFileSync(join(folder, '../../.ci/run'), 'utf8')
  const commands = [...steps.map((step) => step.run ?? ''), run].join('\n')
  const installs = commands.match(/^npm (?:ci|i|install)\b.*/gm)
  expect(new Set(installs)).toEqual(new Set(['npm ci --ignore-scripts']))
})

test('the workflows run .ci/run, and only npm scripts that exist, on each version of Node', () => {
  const scripts = steps.flatMap(
    ({ run = '' }) => /^npm (?:run )?(test|(?<=run )[\w:]+)/.exec(run)?.[1] ?? [],
  )
  expect(scripts.filter((script) => !Object.hasOwn(packageJson.scripts, script))).toEqual([])
  const ci = workflows.find(({ file }) => file === 'ci.yml')
  expect(ci?.jobs['node']?.strategy?.matrix).toMatchObject({ node: versions })
  expect(steps.filter(({ run }) => run === '.ci/run')).toHaveLength(1)
})
