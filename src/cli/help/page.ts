import { stripVTControlCharacters } from 'node:util'
import { wrap } from '../../output/output.js'
import { aliasesOf, type CommandDefinition, type HelpLayout, helpOption, listedOptions, type OptionDefinition } from '../define-command.js'

export const helpCommand = { name: 'help', meaning: 'show help for a command' }

/**
 * Formats the help of a command, or of the program. Loading commander for this would take longer than formatting it.
 *
 * @param names the names of the command and of its parent; none for the program
 */
export function helpPage(names: readonly string[], command: CommandDefinition, layout: HelpLayout): string {
  const { description, arguments: args = [], commands, notes = [], examples = [] } = command
  const words = commands ? ['<command>', '[options]'] : ['[options]', ...args.map(({ name }) => name)]
  const usage = `${layout.strong('Usage:')} ${['plants', ...names, ...words].join(' ')}\n`
  const shown = examples.length > 0 ? section(examples.length > 1 ? 'Examples' : 'Example', examples, layout) : ''
  if (names.length === 0) return `${usage}${shown}\n${commandColumns(command, layout)}\n${moreHelp(command, layout)}`
  const rows: Record<string, HelpRow[]> = {
    Arguments: args.map(({ name, description }) => [name.replace(/[<>[\].]/g, ''), description]),
    Options: commands ? [] : optionRows([...listedOptions(command), helpOption]),
    Commands: commands ? [...commands.map(commandRow), [`${helpCommand.name} [command]`, helpCommand.meaning]] : [],
  }
  const column = columnFor(Object.values(rows).flat(), layout.width)
  const aliases = aliasesOf(command).join(', ')
  return [
    `${usage}\n${paragraph(description, layout.width)}`,
    shown,
    ...Object.entries(rows).map(([title, some]) => (some.length > 0 ? rowsOf(some, layout, title, column) : '')),
    ...notes.map(({ title, lines }) => section(title, lines, layout)),
    `${aliases === '' ? '' : `${layout.strong('Aliases:')} ${aliases}\n`}${layout.strong('Global options:')} plants help options\n`,
  ]
    .filter((block) => block !== '')
    .join('\n')
}

/** The commands of the program in their groups, in two columns if the terminal is wide enough. */
function commandColumns({ commands = [] }: CommandDefinition, layout: HelpLayout): string {
  const named = [...commands, { ...helpCommand, summary: 'show help', group: commands.at(-1)?.group }]
  const isWide = layout.width >= 80
  const groups = [...new Set(named.map(({ group }) => group))].map((title) => {
    const rows = named.filter(({ group }) => group === title).map(({ name, summary = '' }): HelpRow => [name, summary])
    return rowsOf(rows, isWide ? { ...layout, width: 38 } : layout, title, 14)
  })
  if (!isWide) return groups.join('\n')
  const half = Math.ceil(groups.length / 2)
  const [left = [], right = []] = [groups.slice(0, half), groups.slice(half)].map((some) => some.join('\n').trimEnd().split('\n'))
  const lines = Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    const cell = left[index] ?? ''
    return `${cell}${' '.repeat(40 - stripVTControlCharacters(cell).length)}${right[index] ?? ''}`.trimEnd()
  })
  return `${lines.join('\n')}\n`
}

function moreHelp({ topics = [] }: CommandDefinition, { width, strong }: HelpLayout): string {
  const lines = {
    'Global options': '-s, -o, -q, -v and others: plants help options',
    'More help': `plants help <command>, ${topics.map(({ name }) => name).join(', ')}`,
    Manual: 'man plants, with the npm package',
  }
  return Object.entries(lines)
    .map(([title, text]) => paragraph(`${title}: ${text}`, width).replace(`${title}:`, strong))
    .join('')
}

export function optionRows(options: readonly OptionDefinition[]): HelpRow[] {
  return options.map(({ flags, description, default: text }) => [
    flags.startsWith('--') ? `    ${flags}` : flags,
    text === undefined ? description : `${description} (default: "${text}")`,
  ])
}

function commandRow({ name, arguments: args = [], description }: CommandDefinition): HelpRow {
  return [[name, ...args.map((argument) => argument.name)].join(' '), description]
}

export type HelpRow = [term: string, meaning: string]

/** Rows under a title, with all meanings in one column. The meaning of a term that is too long begins on the next line. */
export function rowsOf(rows: readonly HelpRow[], { width, strong }: HelpLayout, title = '', column = columnFor(rows, width)): string {
  const indent = `\n${' '.repeat(column)}`
  const beside = (term: string) => (term.length + 4 <= column ? `  ${term}`.padEnd(column) : `  ${term}${indent}`)
  const lines = rows.map(([term, meaning]) => `${beside(term)}${wrap(meaning, width - column).join(indent)}\n`)
  return `${title === '' ? '' : `${strong(`${title}:`)}\n`}${lines.join('')}`
}

/** The column of the meanings: after the longest term that fits into the left half. */
function columnFor(rows: readonly HelpRow[], width: number): number {
  return Math.max(4, ...rows.map(([term]) => term.length + 4).filter((column) => column <= width / 2))
}

export function section(title: string, lines: readonly string[], { strong }: HelpLayout): string {
  return `${strong(`${title}:`)}\n${lines.map((line) => `  ${line}\n`).join('')}`
}

export function paragraph(text: string, width: number): string {
  return `${wrap(text, width).join('\n')}\n`
}
