// Writes the manual pages, man/plants.1, man/plants-create.1 and so on. They are made of what
// `plants help --output json` prints, so that they need no change when an option is added. They
// are in the language of roff: https://man7.org/linux/man-pages/man7/groff_man.7.html.
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '..')
const folder = join(root, 'man')

const helpWords = [join(root, 'bin/plants.js'), 'help', '--output', 'json']
const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' }
const program = JSON.parse(execFileSync(process.execPath, helpWords, { encoding: 'utf8', env }))
const commands = program.commands.filter(({ name }) => name !== 'help')

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
writePage('plants', formatProgramPage())
for (const command of commands) writePage(`plants-${command.name}`, formatCommandPage(command))

/** Writes a page, whose lines may be in lists of lists. */
function writePage(name, page) {
  writeFileSync(join(folder, `${name}.1`), `${page.flat(Infinity).join('\n')}\n`)
}

function formatProgramPage() {
  const pages = commands.map(({ name, summary }) => [`plants-${name}(1)`, summary])
  return [
    formatHead('plants', 'keep lists of plants'),
    formatSection('SYNOPSIS', formatSynopsis(program)),
    formatSection('DESCRIPTION', escapeRoff(program.description)),
    formatSection('COMMANDS', formatTerms(pages)),
    formatSection('OPTIONS', formatOptions(program)),
    formatSection('ENVIRONMENT', formatTerms(Object.entries(program.variables))),
    formatSection('EXIT STATUS', formatTerms(Object.entries(program.exitCodes))),
    formatSection('EXAMPLES', formatVerbatim(program.examples)),
    formatSection('SEE ALSO', escapeRoff(pages.map(([page]) => page).join(', '))),
  ]
}

function formatCommandPage(command) {
  const { name, aliases, examples, commands: subcommands } = command
  const otherNames = aliases.map((alias) => `plants ${alias}`)
  const hasSubcommands = subcommands.length > 0
  const options = formatOptions(command)
  const synopses = (hasSubcommands ? subcommands : [command]).map(formatSynopsis)
  return [
    formatHead(`plants-${name}`, command.summary),
    formatSection(
      'SYNOPSIS',
      synopses.map((synopsis) => [synopsis, '.br']),
    ),
    formatSection('DESCRIPTION', escapeRoff(command.description)),
    otherNames.length > 0 ? ['.PP', escapeRoff(`Also: ${otherNames.join(', ')}`)] : [],
    command.arguments.length > 0 ? formatSection('ARGUMENTS', formatArguments(command)) : [],
    hasSubcommands ? formatSection('COMMANDS', subcommands.map(formatSubcommand)) : [],
    hasSubcommands || options.length === 0 ? [] : formatSection('OPTIONS', options),
    examples.length > 0 ? formatSection('EXAMPLES', formatVerbatim(examples)) : [],
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

function formatSynopsis({ usage }) {
  const [name, operands] = usage.split(/ (?=[[<])(.*)/)
  return [`.B ${escapeRoff(name)}`, escapeRoff(operands)]
}

function formatSubcommand(command) {
  return [
    `.SS ${escapeRoff(command.name)}`,
    escapeRoff(command.description),
    formatArguments(command),
    formatOptions(command),
  ]
}

function formatArguments(command) {
  return formatTerms(
    command.arguments.map((argument) => [argument.name, formatDescription(argument)]),
  )
}

/** Formats the options, without --help, which each command has. */
function formatOptions(command) {
  const options = command.options.filter(({ name }) => name !== '--help')
  return formatTerms(options.map((option) => [option.flags, formatDescription(option)]))
}

/** Adds the choices and the default. The description of --output has its choices. */
function formatDescription({ name, description, choices, default: defaultValue }) {
  const details = [
    choices && name !== '--output' ? `choices: ${choices.join(', ')}` : [],
    defaultValue === undefined ? [] : `default: ${defaultValue}`,
  ].flat()
  return details.length > 0 ? `${description} (${details.join('; ')})` : description
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
