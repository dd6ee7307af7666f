import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import packageJson from '../../package.json'
import { listTopics } from '../../src/cli/topics.js'
import { getDefault, getSetting, settingNames } from '../../src/config/setting-table.js'
import { assertDefined, errorKinds } from '../../src/errors.js'
import {
  documentation,
  getCommandPath,
  listCommands,
  pages,
  program,
  readAllHelps,
} from '../helpers/expect/documents.js'
import { formatOptionsPage } from '../helpers/expect/options-page.js'
import { listSourceFiles, readSource } from '../helpers/expect/source.js'
import { runPlants } from '../helpers/sandbox/run.js'
import { parseObjects } from '../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../helpers/sandbox/temporary-folder.js'

// The blocks of the pages are run by documents/blocks.test.ts.

const root = join(import.meta.dirname, '../..')
/** The pages, with links to files that the package lacks, which have addresses of the repository. */
const linkedPages = new Map(
  Array.from(pages, ([path, page]): [string, string] => [
    path,
    page.replaceAll(/https:\/\/github\.com\/OWNER\/NAME\/blob\/main\/([\w./-]+)/g, (_, file) =>
      posix.relative(posix.dirname(path), file),
    ),
  ]),
)
const helps = await readAllHelps()

/** The pages that somebody has to keep up to date. */
const handwritten = [...pages]
  .filter(([path]) => !['CHANGELOG.md', 'docs/options.md'].includes(path))
  .map(([, page]) => page)
  .join('\n')

/** The path of each command but `plants`, by its path and its aliases. */
const pathsByName = new Map(
  listCommands(program).flatMap((command) => {
    const path = getCommandPath(command).join(' ')
    return [path, ...command.aliases()].filter(Boolean).map((name) => [name, path] as const)
  }),
)
const longestFirst = [...pathsByName.keys()].toSorted((one, other) => other.length - one.length)
const commandPattern = RegExp(`(?:\\bplants |\`)(?<name>${longestFirst.join('|')})\\b`, 'g')

/** In ascending order, each with the `error` values that cause it. */
const kinds = Object.values(errorKinds)
const exitCodes = [0, ...new Set(kinds.map(({ exitCode }) => exitCode))]
  .toSorted((one, other) => one - other)
  .map((code): [code: number, errors: number[]] => {
    const errors = kinds.flatMap(({ exitCode, error }) => (exitCode === code ? [error] : []))
    return [code, [...new Set<number>(errors)].toSorted((one, other) => one - other)]
  })

test('the index leads to every page, and the architecture to every design note', () => {
  expect(pages.get('README.md')).toContain('](docs/README.md)')
  const index = 'docs/README.md'
  const docs = [...pages.keys()].filter((path) => path.startsWith('docs/') && path !== index)
  const isDesignNote = (path: string) => path.startsWith('docs/design/')
  const guides = docs.filter((path) => !isDesignNote(path)).map((path) => posix.basename(path))
  expect(guides.filter((name) => !linkedPages.get(index)?.includes(`](${name})`))).toEqual([])
  const notes = docs.filter(isDesignNote).map((path) => posix.relative('docs', path))
  const architecture = pages.get('docs/architecture.md') ?? ''
  expect(notes.filter((path) => !architecture.includes(`](${path})`))).toEqual([])
})

test('the topics of help are the pages for users', () => {
  const names = [...pages.keys()].map((path) => /^docs\/([\w-]+)\.md$/.exec(path)?.[1] ?? '')
  const others = ['', 'README', 'architecture', 'options', 'release']
  const topics = listTopics().map(([topic]) => topic)
  expect(topics.toSorted()).toEqual(names.filter((name) => !others.includes(name)).toSorted())
})

test('no page has the name of a command', () => {
  const names = program.commands.flatMap((command) => [command.name(), ...command.aliases()])
  expect(listTopics().filter(([topic]) => names.includes(topic))).toEqual([])
})

test.each([80, 60])('each page is printed as text of %i columns', async (columns) => {
  const options = { terminals: ['stdout' as const], columns, env: { PAGER: '' } }
  for (const [topic, title] of listTopics()) {
    const { code, out, err } = await runPlants(['help', topic], options)
    expect({ topic, code, err, title: out.split('\n')[0] }).toEqual({
      topic,
      code: 0,
      err: '',
      title,
    })
    expect(out).not.toMatch(/\]\(|<!--|```|\*\*|^#|\|-/m)
    // Code, which is indented, and a long word are not wrapped.
    const texts = out.split('\n').filter((line) => /^ ?\S.* /.test(line))
    expect(texts.filter((text) => text.length > columns)).toEqual([])
  }
})

test('every command and subcommand is documented, and no other', () => {
  const paths = [...helps.keys()].filter(Boolean).map((path) => `plants ${path}`)
  expect(paths.filter((path) => !handwritten.includes(path))).toEqual([])
  const names = found(/(?<=[`$]|^)plants ([a-z][\w-]*)/gm)
  const known = program.commands.flatMap((each) => [each.name(), ...each.aliases()])
  expect(names.filter((name) => name !== 'help' && !known.includes(name))).toEqual([])
})

test('no link leads nowhere, and every file and npm script that is named exists', () => {
  const broken = [...linkedPages].flatMap(([path, page]) =>
    [...page.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)]
      .filter(([, file = '', anchor]) => {
        const target = file === '' ? path : posix.join(posix.dirname(path), file)
        return anchor === undefined
          ? !existsSync(join(root, target))
          : !anchorsOf(pages.get(target) ?? '').includes(anchor)
      })
      .map(([link]) => `${path}: ${link}`),
  )
  expect(broken).toEqual([])
  const files = found(/`((?:src|test|bin|deploy|docs|\.ci)\/[\w./-]+)`/g)
  expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([])
  const sources = listSourceFiles('src').map(readSource).join('\n')
  const named = Array.from(sources.matchAll(/\bdocs\/[\w/-]+\.md\b/g), ([path]) => path)
  expect(named.filter((path) => !pages.has(path))).toEqual([])
  const topics = listTopics().map(([topic]) => topic)
  const shown = Array.from(
    (sources + documentation + [...helps.values()].join()).matchAll(
      /\bplants help (?<word>[a-z][\w-]*)/g,
    ),
    ({ groups }) => groups?.['word'] ?? '',
  )
  const known = [...topics, ...program.commands.map((command) => command.name())]
  expect(shown.filter((word) => !known.includes(word))).toEqual([])
  const scripts = found(/\bnpm (?:run )?(start|test(?::\w+)?|(?<=run )[\w:]+)/g)
  expect(scripts.filter((name) => !Object.hasOwn(packageJson.scripts, name))).toEqual([])
})

test('every name that a page finds in a file of the code is there', () => {
  // Such as: `finish` in `src/server/handler.ts`, or: `src/server/plants.ts`: `createPlant`, or a
  // row of a table: | 9 | `createPlant` | `src/server/plants.ts` |
  const names = /`#?(\w+)`(?: and `#?(\w+)`)? in `(src\/[\w./-]+\.ts)`/g
  const listed = /^\d+\. `(?<file>src\/[\w./-]+\.ts)`: (?<text>.*)$/gm
  const rows = /^\| \d+ \| (?<text>.*) \| `(?<file>src\/[\w./-]+\.ts)` \|$/gm
  const lines = [...documentation.matchAll(listed), ...documentation.matchAll(rows)]
  const pairs = [
    ...Array.from(documentation.matchAll(names), ([, ...groups]) => groups),
    ...lines.map(({ groups: { file = '', text = '' } = {} }) => [
      ...Array.from(text.matchAll(/`#?([A-Za-z]\w+)`/g), ([, name]) => name),
      file,
    ]),
  ].map((groups) => ({ file: groups.at(-1) ?? '', names: groups.slice(0, -1) }))
  expect(pairs.length).toBeGreaterThan(20)
  const missing = pairs.flatMap(({ file, names }) => {
    const source = read(file)
    const absent = names.filter((name) => name && !RegExp(`\\b${name}\\b`).test(source))
    return absent.map((name) => `${name} in ${file}`)
  })
  expect(missing).toEqual([])
})

test('every option is documented, and no other', () => {
  const real = flagsIn([...helps.values()].join('\n'))
  const others =
    /`(?:docker|np[mx]|sha256sum|systemd-analyze) [^`]*`|^np[mx] .*$|^ *```text\n[^`]*^ *```$/gm
  const ofBlocks =
    /^ *(?:- run: npm|curl|30 3 \* \* \* plants umask 077; pg_dump) (?:.*\\\n)*.*$|<!--.*?-->/gm
  const listed = flagsIn(handwritten.replaceAll(others, '').replaceAll(ofBlocks, ''))
  expect([...listed].filter((flag) => !real.has(flag))).toEqual([])
  expect([...real].filter((flag) => !listed.has(flag))).toEqual([])
})

test('every option is documented at its command', () => {
  const documented = findCommandsWithOptions()
  const listFlags = ({ options }: Command) => [...flagsIn(options.map(({ flags }) => flags).join())]
  const ofAllCommands = listFlags(program)
  const missing = listCommands(program).flatMap((command) => {
    const own = listFlags(command).filter((flag) => !ofAllCommands.includes(flag))
    const path = getCommandPath(command).join(' ')
    return own.map((flag) => `${path} ${flag}`).filter((line) => !documented.has(line))
  })
  expect(missing).toEqual([])
})

test('docs/options.md lists the options of every command as its help does', async () => {
  // The option --update of Vitest writes the page.
  await expect(formatOptionsPage()).toMatchFileSnapshot(join(root, 'docs/options.md'))
})

test('the limits of the service have the defaults of its help', () => {
  const help = helps.get('serve')?.replaceAll(/\s+/g, ' ') ?? ''
  const rows = tableAt('| option | default |')
  const missing = rows.filter(
    ([flag = '', value]) =>
      !RegExp(`${flag.split(' ')[0]} <[^-]*\\(default: ${value}\\)`).test(help),
  )
  expect([rows.length > 0, missing]).toEqual([true, []])
})

test('every exit code is listed with its error values, and no other is named', () => {
  const rows = tableAt('| exit code |').map(([code, , errors = '']) => [
    Number(code),
    (errors.match(/\d+/g) ?? []).map(Number),
  ])
  expect(rows).toEqual(exitCodes)
  const named = found(/exit code(?: is)? (\d+)/g).map(Number)
  expect(named.filter((code) => !exitCodes.some(([real]) => real === code))).toEqual([])
})

test('every environment variable that is read is documented', () => {
  const src = join(root, 'src')
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  const sources = files.filter((name) => name.endsWith('.ts')).map((name) => read(`src/${name}`))
  const used = sources.join('\n').matchAll(/env\['(\w+)'\]|'(PLANTS_\w+)'/g)
  const ofTheSystem = '_ APPDATA HOME TERM LANG LC_ALL LC_CTYPE LOCALAPPDATA SHELL SNAP'.split(' ')
  const own = new Set(Array.from(used, ([, name, ours]) => name ?? ours ?? ''))
  for (const name of ofTheSystem) own.delete(name)
  expect(own.size).toBeGreaterThan(5)
  expect([...own].filter((name) => !documentation.includes(`\`${name}\``))).toEqual([])
})

test('every setting is documented with its option, variable and default', () => {
  const rows = tableAt('| setting |').map(([name, option = '', ...rest]) => [
    ...[name, option.replace(' of plants stores add', ''), ...rest.slice(0, 3)],
  ])
  const scopeNames = { user: 'all stores', store: 'one store' }
  const expected = settingNames.map((name) => {
    const { variable = '-', scopes } = getSetting(name)
    const saved = scopes.map((scope) => scopeNames[scope]).join(', ')
    return [name, `--${name}`, variable, saved, getDefault(name)]
  })
  expect(rows).toEqual(expected)
})

test('every check of doctor is documented, and no other', async () => {
  const store = join(createTemporaryFolder(), 'plants.db')
  expect(
    await runPlants(['create', '--id', '1', '--name', 'Fern', '--store', store]),
  ).toMatchObject({ code: 0 })
  const { out } = await runPlants(['doctor', '--output', 'ndjson', '--store', store])
  const checks = parseObjects(out).map(({ check }) => String(check).replace(store, 'NAME'))
  expect(tableAt('| check |').map(([check]) => check)).toEqual(checks)
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

/**
 * Finds where the pages for users name options. An option belongs to the command before it in its
 * line; if there is none, to the commands of its line; and if it has none, to those of the last line
 * that has any.
 */
function findCommandsWithOptions(): Set<string> {
  const userPages = ['README.md', ...listTopics().map(([topic]) => `docs/${topic}.md`)]
  const lines = userPages.flatMap((path) =>
    (pages.get(path) ?? '').replaceAll('\\\n', ' ').split('\n'),
  )
  const found = new Set<string>()
  let lastNamed: string[] = []
  for (const line of lines) {
    const named = findCommandsIn(line)
    if (named.length > 0) lastNamed = named
    for (const { 0: flag, index } of line.matchAll(flagPattern)) {
      const before = findCommandsIn(line.slice(0, index)).slice(-1)
      for (const path of before.length > 0 ? before : lastNamed) found.add(`${path} ${flag}`)
    }
  }
  return found
}

/** The commands that a line names by a name or an alias, as in: `plants ls` or `list`. */
function findCommandsIn(line: string): string[] {
  return Array.from(line.matchAll(commandPattern), ({ groups }) =>
    assertDefined(pathsByName.get(groups?.['name'] ?? '')),
  )
}

const flagPattern = /(?<![\w-])--[a-z][a-z-]*/g

function flagsIn(text: string): Set<string> {
  return new Set(Array.from(text.matchAll(flagPattern), ([flag]) => flag))
}

/** The anchors of the titles of a page, as GitHub makes them, and those that the page sets itself. */
function anchorsOf(page: string): string[] {
  const titles = page.replaceAll(/^```.*?^```$/gms, '').matchAll(/^#+ (.*)$/gm)
  const ofTitles = Array.from(titles, ([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
  return [...ofTitles, ...Array.from(page.matchAll(/<a id="([\w-]+)">/g), ([, id = '']) => id)]
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
