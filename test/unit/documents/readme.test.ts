import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import packageJson from '../../../package.json'
import { defaultOf, settingNames, settingOf } from '../../../src/config/setting-table.js'
import { errorKinds } from '../../../src/platform/errors.js'
import { blocksOf, commandAt, documentation, helpsOf, pages } from '../../helpers/documents.js'
import { runPlants } from '../../helpers/run.js'

const root = join(import.meta.dirname, '../../..')
const readme = pages.get('README.md') ?? ''

/** In ascending order, each with the `error` values that cause it. */
const exitCodes = [0, ...new Set(Object.values(errorKinds).map(({ exitCode }) => exitCode))]
  .toSorted((one, other) => one - other)
  .map((code): [code: number, errors: number[]] => {
    const kinds = Object.values(errorKinds).filter(({ exitCode }) => exitCode === code)
    const errors = new Set<number>(kinds.map(({ error }) => error))
    return [code, [...errors].toSorted((one, other) => one - other)]
  })
const helps = await helpsOf([])

test('the benchmarks say rightly which goals are met', () => {
  const goals = [
    ...(pages.get('docs/benchmarks.md') ?? '').matchAll(
      /\|([\d.]+)\|(?:[^|]*\|)?at (most|least) ([\d.]+): (\w+)\|/g,
    ),
  ]
  const isMet = (ratio: number, word: string, goal: number) =>
    word === 'most' ? ratio <= goal : ratio >= goal
  const said = goals.map(([, , , , verdict]) => verdict)
  expect(said).toEqual(
    goals.map(([, ratio, word = '', goal]) =>
      isMet(Number(ratio), word, Number(goal)) ? 'met' : 'missed',
    ),
  )
  expect(said.length).toBeGreaterThan(10)
})

const scripts: Readonly<Record<string, string>> = packageJson.scripts

describe('the README', () => {
  test('begins with the two commands: one runs the main job, one the tests', () => {
    const [first, second] = blocksOf(readme)
    expect([first?.text, second?.text]).toEqual([
      'npm ci && npm run build && npx plants create --id 1 --name Fern --store ./try.db\n',
      'npm ci && npm test\n',
    ])
    expect(read('.ci/run')).toMatch(
      /^npm ci\nnpm run build\n.*npx plants create --id 1 --name Fern --store "\$home\/try\.db"\nnpm test$/m,
    )
  })

  test('is short, and leads to every page', () => {
    expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(8192)
    expect(
      [...pages.keys()].filter(
        (path) => path.startsWith('docs/') && !readme.includes(`](${path})`),
      ),
    ).toEqual([])
  })

  test('lists every command, and the documentation every subcommand', () => {
    const listed = new Set(
      tableAt('| command | what it does |').flatMap(([cell = '']) => cell.split(', ')),
    )
    const paths = [...helps.keys()].filter((path) => path !== '').map((path) => `plants ${path}`)
    const isBelow = (path: string) => path.split(' ').length > 2
    expect([...listed].toSorted()).toEqual(paths.filter((path) => !isBelow(path)).toSorted())
    expect(paths.filter((path) => isBelow(path) && !documentation.includes(path))).toEqual([])
  })
})

describe('the documentation', () => {
  test('has no page of 10 KB or more', () => {
    const long = [...pages].filter(
      ([path, page]) => path.startsWith('docs/') && Buffer.byteLength(page) >= 10_240,
    )
    expect(long.map(([path]) => path)).toEqual([])
  })

  test('has no link that leads nowhere', () => {
    const broken = [...pages].flatMap(([path, page]) =>
      [...page.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)]
        .filter(([, file = '', anchor]) => {
          const target = file === '' ? path : posix.join(posix.dirname(path), file)
          return anchor === undefined
            ? !exists(target)
            : !anchorsOf(pages.get(target) ?? '').includes(anchor)
        })
        .map(([link]) => `${path}: ${link}`),
    )
    expect(broken).toEqual([])
  })

  test('has tables whose rows have as many cells as their titles, as GitHub reads them', () => {
    const wrong = [...pages].flatMap(([path, page]) =>
      page
        .replaceAll(/^```.*?^```$/gms, '')
        .split(/\n{2,}/)
        .map((part) => part.split('\n').filter((line) => line.startsWith('|')))
        .flatMap(([titles = '', ...rows]) => rows.filter((row) => cellsIn(row) !== cellsIn(titles)))
        .map((row) => `${path}: ${row}`),
    )
    expect([cellsIn('| a | `b \\| c` |'), cellsIn('| a | `b | c` |')]).toEqual([2, 3])
    expect(wrong).toEqual([])
  })

  test('names files of the project that exist', () => {
    const named = found(/`((?:src|test|bin|deploy|docs|\.ci)\/[\w./-]+)`/g)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  test('names the npm scripts that there are', () => {
    const named = new Set(found(/\bnpm (?:run )?(start|test(?::\w+)?|(?<=run )[\w:]+)/g))
    const all = Object.keys(scripts).filter((script) => script !== 'prepack')
    expect([...named].toSorted()).toEqual(all.toSorted())
  })

  test('gives the scripts flags that they declare', () => {
    const lines = [...documentation.matchAll(/\bnpm run (?<script>[\w:]+) -- (?<flags>-.*?)[`\n]/g)]
    const wrong = lines.flatMap(({ groups: { script = '', flags = '' } = {} }) => {
      const file = /node (\S+)$/.exec(scripts[script] ?? '')?.[1]
      return [...flagsIn(flags)].filter(
        (flag) =>
          !file ||
          !read(file)
            .replaceAll(/^\/\/.*/gm, '')
            .includes(flag.slice(2)),
      )
    })
    expect({ lines: lines.length > 3, wrong }).toEqual({ lines: true, wrong: [] })
  })

  test('lists every flag of every command, and no other', async () => {
    const { out } = await runPlants(['help', 'options'])
    const real = flagsIn([...helps.values(), out].join('\n'))
    const current = [...pages].filter(([path]) => path !== 'CHANGELOG.md').map(([, page]) => page)
    const others =
      /`(?:docker|np[mx]|sha256sum|systemd-analyze) [^`]*`|^np[mx] .*$|^```text\n[^`]*^```$/gm
    const ofBlocks = /^ *(?:- run: npm|curl) (?:.*\\\n)*.*$|<!--.*?-->/gm
    const listed = flagsIn(current.join('\n').replaceAll(others, '').replaceAll(ofBlocks, ''))
    expect([...listed].filter((flag) => !real.has(flag))).toEqual([])
    expect([...real].filter((flag) => !listed.has(flag))).toEqual([])
  })

  test('names only other names of commands that there are', () => {
    const aliasesOf = (path: string) => commandAt([path])?.aliases() ?? []
    const [sentence = ''] = /^.*Other names are .*$/m.exec(documentation) ?? []
    const named = [...sentence.matchAll(/((?:`\w+`(?: and )?)+) for `(\w+)`/g)].flatMap(
      ([, names = '', path = '']) =>
        Array.from(names.matchAll(/\w+(?=`)/g), ([name]) => [name, aliasesOf(path).includes(name)]),
    )
    expect(named.length).toBeGreaterThan(3)
    expect(named.filter(([, isAlias]) => !isAlias)).toEqual([])
  })

  test('has the defaults of the limits of the service', () => {
    const help = helps.get('serve')?.replaceAll(/\s+/g, ' ') ?? ''
    const rows = tableAt('| flag | default |')
    const missing = rows.filter(
      ([flag = '', value]) =>
        !RegExp(`${flag.split(' ')[0]} <[^-]*\\(default: ${value}\\)`).test(help),
    )
    expect([rows.length > 0, missing]).toEqual([true, []])
  })

  test('names only commands and exit codes that there are', () => {
    const names = found(/(?<=[`$]|^)plants ([a-z][\w-]*)/gm)
    expect(names.filter((name) => name !== 'help' && !commandAt([name]))).toEqual([])
    const codes = found(/exit code(?: is)? (\d+)/g).map(Number)
    expect(codes.filter((code) => !exitCodes.some(([real]) => real === code))).toEqual([])
  })

  test('lists every exit code with its error values', () => {
    const listed = tableAt('| exit code |').map(([code, , errors = '']) => [
      Number(code),
      (errors.match(/\d+/g) ?? []).map(Number),
    ])
    expect(listed).toEqual(exitCodes)
  })

  test('lists every environment variable that is read', () => {
    const used = [...sources().matchAll(/env\['(\w+)'\]|'(PLANTS_\w+)'/g)].map(
      ([, name, own]) => name ?? own ?? '',
    )
    const ofTheSystem = '_ APPDATA HOME TERM LANG LC_ALL LC_CTYPE LOCALAPPDATA SHELL'.split(' ')
    const own = new Set(used.filter((name) => !ofTheSystem.includes(name)))
    expect(own.size).toBeGreaterThan(5)
    expect([...own].filter((name) => !documentation.includes(`\`${name}\``))).toEqual([])
  })

  test('has the options, variables and defaults of the settings', () => {
    const rows = tableAt('| setting |').map(([name, option, variable, saved, byDefault]) => ({
      ...{ name, option: option?.replace(', of stores', ''), variable, saved, byDefault },
    }))
    const scopes = { user: 'all stores', store: 'one store' }
    expect(rows).toEqual(
      settingNames.map((name) => ({
        ...{
          name,
          option: `--${name}`,
          variable: settingOf(name).variable ?? '-',
          byDefault: defaultOf(name),
        },
        saved: settingOf(name)
          .scopes.map((scope) => scopes[scope])
          .join(', '),
      })),
    )
  })
})

/** What a group of a pattern matches in the documentation. */
function found(pattern: RegExp): string[] {
  return Array.from(documentation.matchAll(pattern), ([, group = '']) => group)
}

/** The rows of the first table with these titles, without its marks. */
function tableAt(titles: string): string[][] {
  const start = documentation.indexOf(`\n${titles}`)
  if (start === -1) throw new Error(`No page has the table ${titles}`)
  const [rows = ''] = documentation.slice(start + 1).split('\n\n')
  return rows
    .replaceAll('`', '')
    .split('\n')
    .slice(2)
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim()))
}

/** GitHub divides a row at each `|` that has no backslash, also within code. */
function cellsIn(row: string): number {
  return row.split(/(?<!\\)\|/).length - 2
}

function flagsIn(text: string): Set<string> {
  return new Set([...text.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map((match) => match[0]))
}

/** The anchors of the titles of a page, as GitHub makes them. */
function anchorsOf(page: string): string[] {
  const titles = page.replaceAll(/^```.*?^```$/gms, '').matchAll(/^#+ (.*)$/gm)
  return Array.from(titles, ([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
}

function sources(): string {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => name.endsWith('.ts'))
  return files.map((name) => read(join('src', name))).join('\n')
}

function exists(path: string): boolean {
  return pages.has(path) || path === 'LICENSE'
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
