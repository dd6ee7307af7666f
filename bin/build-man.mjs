// Writes the manual pages, man/plants.1, man/plants-create.1 and so on, from the commands that the
// help is made of.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Help } from 'commander'
import { rolldown } from 'rolldown'
import packageJson from '../package.json' with { type: 'json' }
import { rawText } from './build/raw-text.mjs'

const root = join(import.meta.dirname, '..')
const cache = join(root, 'node_modules/.cache/plants-man')
const folder = join(root, 'man')

const bundle = await rolldown({
  input: { program: join(root, 'src/cli/program/program.ts') },
  platform: 'node',
  external: /^(node:|@?[a-z][\w./-]*$)/, // packages
  plugins: [rawText],
  logLevel: 'warn',
})
await bundle.write({
  dir: cache,
  cleanDir: true,
  entryFileNames: '[name].mjs',
  chunkFileNames: '[name]-[hash].mjs',
})
const { buildProgram } = await import(pathToFileURL(join(cache, 'program.mjs')).href)
const io = { stdout: { isTerminal: true, columns: 72 }, env: { NO_COLOR: '1' } }
const program = await buildProgram(io)
const commands = program.commands.filter((command) => command.name() !== 'help')
const help = program.createHelp()
help.prepareContext({ helpWidth: 72 })

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
const names = commands.map((command) => `plants-${command.name()}`)
for (const command of commands) write(`plants-${command.name()}`, commandPage(command))
write('plants', programPage())

function write(name, page) {
  writeFileSync(join(folder, `${name}.1`), `${page.flat(Infinity).join('\n')}\n`)
}

function programPage() {
  return [
    head('plants', 'create, import, list, export and serve plants'),
    section('SYNOPSIS', '.B plants', roff('<command> [options]')),
    section('DESCRIPTION', roff('Create, import, list, export and serve plants.')),
    section(
      'COMMANDS',
      terms(commands.map((command) => [`plants-${command.name()}(1)`, command.summary()])),
    ),
    section('OPTIONS', optionTerms(program.options)),
    section('EXIT STATUS', terms(exitCodes())),
    section('EXAMPLES', verbatim(program.examples)),
    section('SEE ALSO', roff(names.map((name) => `${name}(1)`).join(', '))),
  ]
}

/** Each code with its meaning, from the table of the documentation. */
function exitCodes() {
  const page = readFileSync(join(root, 'docs/scripting.md'), 'utf8')
  const rows = page.matchAll(/^\| (?<code>\d+) \| (?<meaning>.+) \|.*\|$/gm)
  return Array.from(rows, ({ groups = {} }) => [groups.code, groups.meaning.replaceAll('`', '')])
}

function commandPage(command) {
  const { examples } = command
  const below = command.commands
  return [
    head(`plants-${command.name()}`, command.summary()),
    section(
      'SYNOPSIS',
      below.length === 0
        ? synopsis(command)
        : below.map((each, at) => [at > 0 ? '.br' : [], synopsis(each)]),
    ),
    section(
      'DESCRIPTION',
      roff(command.description()),
      command.aliases().map((alias) => ['.PP', roff(`Also: plants ${alias}`)]),
    ),
    argumentsOf(command).length === 0 ? [] : section('ARGUMENTS', argumentsOf(command)),
    below.length === 0
      ? optionSections(command)
      : section(
          'COMMANDS',
          below.map((each) => [
            `.SS ${roff(each.name())}`,
            roff(each.description()),
            argumentsOf(each),
            [...optionGroups(each).values()].map(optionTerms),
          ]),
        ),
    examples.length === 0 ? [] : section('EXAMPLES', verbatim(examples)),
    section(
      'SEE ALSO',
      roff('plants(1), for the options of every command, the environment and the exit codes'),
    ),
  ]
}

function head(name, summary) {
  const title = `.TH ${name.toUpperCase()} 1 "" "plants ${packageJson.version}" "plants"`
  return [title, section('NAME', `${roff(name)} \\- ${roff(summary)}`)]
}

function section(title, ...lines) {
  return [`.SH ${title}`, lines]
}

function synopsis(command) {
  const words = new Help()
    .commandUsage(command)
    .replace(/\|[\w-]+/g, '')
    .split(' [options]')
  return [`.B ${roff(words[0])}`, roff(`[options]${words[1]}`)]
}

function argumentsOf(command) {
  return terms(
    help
      .visibleArguments(command)
      .map((argument) => [help.argumentTerm(argument), help.argumentDescription(argument)]),
  )
}

/** The options of a command in the groups of its help, without --help, which each has. */
function optionGroups(command) {
  const listed = help.visibleOptions(command).filter((option) => option !== program.helpOption)
  return help.groupItems([], listed, (option) => option.helpGroupHeading ?? 'Options:')
}

function optionSections(command) {
  return Array.from(optionGroups(command), ([group, list]) =>
    section(group.replace(':', '').toUpperCase(), optionTerms(list)),
  )
}

function optionTerms(list) {
  return terms(list.map((option) => [option.flags, help.optionDescription(option)]))
}

function terms(rows) {
  return rows.map(([term, meaning]) => ['.TP', `.B ${roff(term)}`, roff(meaning)])
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
    .replace(
      /[^\0-\x7f]/gu,
      (character) => `\\[u${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replace(/^\./, '\\&.')
}
