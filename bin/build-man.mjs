// Writes the manual pages, man/plants.1, man/plants-create.1 and so on. They are made of the
// commands of commander, as the help is, so that they need no change when an option is added. They
// are in the language of roff: https://man7.org/linux/man-pages/man7/groff_man.7.html.
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
  external: /^(node:|@?[a-z][\w./-]*$)/, // Modules of Node.js and packages are not bundled.
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
// The program is built and not run, so it needs no more of `io` than these two members.
const io = { stdout: { isTerminal: true, columns: 72 }, env: { NO_COLOR: '1' } }
const program = await buildProgram(io)
const commands = program.commands.filter((command) => command.name() !== 'help')
const help = program.createHelp()
help.prepareContext({ helpWidth: 72 })

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
writePage('plants', formatProgramPage())
for (const command of commands) writePage(`plants-${command.name()}`, formatCommandPage(command))

/** Writes a page, whose lines may be in lists of lists. */
function writePage(name, page) {
  writeFileSync(join(folder, `${name}.1`), `${page.flat(Infinity).join('\n')}\n`)
}

function formatProgramPage() {
  const pages = commands.map((command) => [`plants-${command.name()}(1)`, command.summary()])
  return [
    formatHead('plants', 'create, import, list, export and serve plants'),
    formatSection('SYNOPSIS', '.B plants', escapeRoff('<command> [options]')),
    formatSection('DESCRIPTION', escapeRoff('Create, import, list, export and serve plants.')),
    formatSection('COMMANDS', formatTerms(pages)),
    formatSection('OPTIONS', formatOptions(program.options)),
    formatSection('ENVIRONMENT', formatTerms(readVariables())),
    formatSection('EXIT STATUS', formatTerms(readExitCodes())),
    formatSection('EXAMPLES', formatVerbatim(program.examples)),
    formatSection('SEE ALSO', escapeRoff(pages.map(([page]) => page).join(', '))),
  ]
}

/** Reads the environment variables with their meanings from the tables of the documentation. */
function readVariables() {
  const page = readFileSync(join(root, 'docs/settings.md'), 'utf8')
  const settingRows = page.matchAll(/^\|[^|]+\| `(?<option>--[\w-]+)` \| `(?<name>[A-Z_]+)` \|/gm)
  const otherRows = page.matchAll(/^\| (?<names>`[A-Z][^|]+) \| (?<meaning>[^|]+) \|$/gm)
  return [
    ...Array.from(settingRows, ({ groups = {} }) => [groups.name, `as ${groups.option}`]),
    ...Array.from(otherRows, ({ groups = {} }) => [
      groups.names.replaceAll('`', ''),
      groups.meaning.replace(/\[(?<text>[^\]]+)\]\([^)]+\)/g, '$<text>').replaceAll('`', ''),
    ]),
  ]
}

/** Reads each exit code with its meaning from the table of the documentation. */
function readExitCodes() {
  const page = readFileSync(join(root, 'docs/scripting.md'), 'utf8')
  const rows = page.matchAll(/^\| (?<code>\d+) \| (?<meaning>.+) \|.*\|$/gm)
  return Array.from(rows, ({ groups = {} }) => [groups.code, groups.meaning.replaceAll('`', '')])
}

function formatCommandPage(command) {
  const { examples } = command
  const hasSubcommands = command.commands.length > 0
  const commandArguments = formatArguments(command)
  const otherNames = command.aliases().map((alias) => `plants ${alias}`)
  const aliases = otherNames.length > 0 ? ['.PP', escapeRoff(`Also: ${otherNames.join(', ')}`)] : []
  return [
    formatHead(`plants-${command.name()}`, command.summary()),
    formatSection('SYNOPSIS', formatSynopses(hasSubcommands ? command.commands : [command])),
    formatSection('DESCRIPTION', escapeRoff(command.description()), aliases),
    commandArguments.length === 0 ? [] : formatSection('ARGUMENTS', commandArguments),
    hasSubcommands ? formatSubcommands(command.commands) : formatOptionSections(command),
    examples.length === 0 ? [] : formatSection('EXAMPLES', formatVerbatim(examples)),
    formatSection(
      'SEE ALSO',
      escapeRoff('plants(1), for the options of every command, the environment and the exit codes'),
    ),
  ]
}

function formatHead(name, summary) {
  const title = `.TH ${name.toUpperCase()} 1 "" "plants ${packageJson.version}" "plants"`
  return [title, formatSection('NAME', `${escapeRoff(name)} \\- ${escapeRoff(summary)}`)]
}

function formatSection(title, ...lines) {
  return [`.SH ${title}`, lines]
}

function formatSynopses(commandList) {
  return commandList.map((command, index) => [index > 0 ? '.br' : [], formatSynopsis(command)])
}

function formatSynopsis(command) {
  const [name, operands] = new Help()
    .commandUsage(command)
    .replace(/\|[\w-]+/g, '') // This leaves out aliases: `create|new` becomes `create`.
    .split(' [options]')
  return [`.B ${escapeRoff(name)}`, escapeRoff(`[options]${operands}`)]
}

function formatSubcommands(commandList) {
  const subcommands = commandList.map((command) => [
    `.SS ${escapeRoff(command.name())}`,
    escapeRoff(command.description()),
    formatArguments(command),
    [...groupOptions(command).values()].map(formatOptions),
  ])
  return formatSection('COMMANDS', subcommands)
}

function formatArguments(command) {
  return formatTerms(
    help
      .visibleArguments(command)
      .map((argument) => [help.argumentTerm(argument), help.argumentDescription(argument)]),
  )
}

/** Groups the options of a command as its help does, without --help, which each command has. */
function groupOptions(command) {
  const options = help.visibleOptions(command).filter((option) => option !== program.helpOption)
  return help.groupItems([], options, (option) => option.helpGroupHeading ?? 'Options:')
}

function formatOptionSections(command) {
  return Array.from(groupOptions(command), ([heading, options]) =>
    formatSection(heading.replace(':', '').toUpperCase(), formatOptions(options)),
  )
}

function formatOptions(options) {
  return formatTerms(options.map((option) => [option.flags, help.optionDescription(option)]))
}

function formatTerms(rows) {
  return rows.map(([term, description]) => [
    '.TP',
    `.B ${escapeRoff(term)}`,
    escapeRoff(description),
  ])
}

function formatVerbatim(lines) {
  return ['.nf', lines.map((line) => escapeRoff(line)), '.fi']
}

/**
 * Escapes a line of text. A dot or an apostrophe at its beginning would be a request of roff. And
 * roff prints `-` and quotes as typographic characters, with which a command that somebody copies
 * would fail.
 */
function escapeRoff(text) {
  const escapedText = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
  return escapedText
    .replace(
      /[^\0-\x7f]/gu,
      (character) => `\\[u${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replace(/^\./, '\\&.')
}
