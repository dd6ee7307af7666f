// Writes the manual pages, man/plants.1, man/plants-create.1 and so on, from the definitions that the help is made of.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import packageJson from '../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '..')
const cache = join(root, 'node_modules/.cache/plants-man')
const folder = join(root, 'man')

const bundle = await rolldown({
  input: { commands: join(root, 'src/cli/commands/index.ts'), definitions: join(root, 'src/cli/define-command.ts') },
  platform: 'node',
  external: /^(node:|@?[a-z][\w./-]*$)/, // packages, which no definition needs
  logLevel: 'warn',
})
await bundle.write({ dir: cache, cleanDir: true, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' })
const load = (name) => import(pathToFileURL(join(cache, `${name}.mjs`)).href)
const [{ loadCommands, plants }, { aliasesOf, globalOptions, listedOptions }] = await Promise.all([load('commands'), load('definitions')])
await loadCommands(plants.commands.map(({ name }) => name))

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
const date = releaseDate() ?? commitDate()
const names = plants.commands.map(({ name }) => `plants-${name}`)
for (const command of plants.commands) write(`plants-${command.name}`, commandPage(command))
write('plants', await programPage())

function write(name, page) {
  writeFileSync(join(folder, `${name}.1`), `${page.flat(Infinity).join('\n')}\n`)
}

async function programPage() {
  const topics = await Promise.all(plants.topics.map(async ({ name, page }) => ({ name, text: await page({ width: 72, strong: String }) })))
  const titles = { environment: 'ENVIRONMENT', 'exit-codes': 'EXIT STATUS', formats: 'FORMATS' }
  return [
    head('plants', 'create, import, list, export and serve plants'),
    section('SYNOPSIS', '.B plants', roff('<command> [options]')),
    section('DESCRIPTION', roff(plants.description)),
    section('COMMANDS', terms(plants.commands.map(({ name, summary }) => [`plants-${name}(1)`, summary]))),
    section('OPTIONS', options(globalOptions)),
    topics.filter(({ name }) => titles[name]).map(({ name, text }) => section(titles[name], verbatim(text.trimEnd().split('\n')))),
    examplesOf(plants),
    section('SEE ALSO', roff(names.map((name) => `${name}(1)`).join(', '))),
  ]
}

function commandPage(command) {
  const { name, summary, description, commands = [], notes = [] } = command
  return [
    head(`plants-${name}`, summary),
    section(
      'SYNOPSIS',
      commands.length === 0
        ? synopsis(['plants', command])
        : commands.map((below, at) => [at > 0 ? '.br' : [], synopsis(['plants', command, below])]),
    ),
    section(
      'DESCRIPTION',
      roff(description),
      aliasesOf(command).map((alias) => ['.PP', roff(`Also: plants ${alias}`)]),
    ),
    parts(command).map(([title, list]) => section(title.toUpperCase(), list)),
    commands.length === 0
      ? []
      : section(
          'COMMANDS',
          commands.map((below) => [`.SS ${roff(below.name)}`, roff(below.description), parts(below).map(([, list]) => list)]),
        ),
    notes.map(({ title, lines }) => section(title.toUpperCase(), verbatim(lines))),
    examplesOf(command),
    section('SEE ALSO', roff('plants(1), for the options of every command, the environment and the exit codes')),
  ]
}

function head(name, summary) {
  const title = `.TH ${name.toUpperCase()} 1 "${date}" "plants ${packageJson.version}" "plants"`
  return [title, section('NAME', `${roff(name)} \\- ${roff(summary)}`)]
}

/** The date of this version in the changelog; undefined until it is released. */
function releaseDate() {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  return RegExp(`^## \\[${packageJson.version}\\] - (?<date>\\d{4}-\\d\\d-\\d\\d)$`, 'm').exec(changelog)?.groups.date
}

/** The date of the last commit; empty without one, as in an archive. The time of the build would make each build different. */
function commitDate() {
  const { stdout } = spawnSync('git', ['log', '-1', '--date=format:%Y-%m-%d', '--format=%cd'], { cwd: root, encoding: 'utf8' })
  return stdout?.trim() ?? ''
}

function section(title, ...lines) {
  return [`.SH ${title}`, lines]
}

function synopsis(path) {
  const { arguments: taken = [] } = path.at(-1)
  const words = path.map((part) => part.name ?? part).join(' ')
  return [`.B ${roff(words)}`, roff(['[options]', ...taken.map(({ name }) => name)].join(' '))]
}

/** The arguments and options of a command. */
function parts(command) {
  const { arguments: taken = [] } = command
  const lists = [
    ['Arguments', terms(taken.map(({ name, description }) => [name.replace(/[<>[\].]/g, ''), description]))],
    ['Options', options(listedOptions(command))],
  ]
  return lists.filter(([, list]) => list.length > 0)
}

function options(list) {
  return terms(
    list.map(({ flags, description, default: text }) => [flags, text === undefined ? description : `${description} (default: "${text}")`]),
  )
}

function terms(rows) {
  return rows.map(([term, meaning]) => ['.TP', `.B ${roff(term)}`, roff(meaning)])
}

function examplesOf({ examples = [] }) {
  return examples.length === 0 ? [] : section('EXAMPLES', verbatim(examples))
}

function verbatim(lines) {
  return ['.nf', lines.map((line) => roff(line)), '.fi']
}

/** A line of text for roff, in which nothing is a request, and what is typed can be copied. */
function roff(text) {
  const escaped = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
  return escaped
    .replace(/[^\0-\x7f]/gu, (character) => `\\[u${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`)
    .replace(/^\./, '\\&.')
}
