import { wrap } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import type { CommandDefinition, OptionDefinition } from '../define-command.js'

export const helpOption: OptionDefinition = { flags: '-h, --help', description: 'show this help' }
export const helpCommand = { name: 'help', meaning: 'show the help of a command' }

/** The help of a command, laid out here because commander takes longer to load than this takes altogether. */
export function helpPage(path: readonly CommandDefinition[], width: number): string {
  const [program, ...below] = path
  const command = path.at(-1)
  if (!program || !command) return ''
  const { name, description, arguments: taken = [], options = [], commands, topics = [], notes = [], examples = [] } = command
  const sections: [title: string, rows: readonly Row[]][] = [
    ['Arguments', taken.map((argument) => ({ term: argument.name.replace(/[<>[\].]/g, ''), meaning: argument.description }))],
    ['Options', [...options, helpOption].map(optionRow)],
    ['Global Options', below.length > 0 ? (program.options ?? []).map(optionRow) : []],
    ['Commands', commands ? [...commands.map(commandRow), { term: `${helpCommand.name} [command]`, meaning: helpCommand.meaning }] : []],
    ['Topics', topics.map((topic) => ({ term: `help ${topic.name}`, meaning: topic.meaning }))],
  ]
  const column = columnFor(
    sections.flatMap(([, rows]) => rows),
    width,
  )
  const rest = commands ? ['[command]'] : taken.map((argument) => argument.name)
  return [
    `Usage: ${[...path.slice(0, -1).map((parent) => parent.name), name, '[options]', ...rest].join(' ')}\n\n`,
    `${paragraph(description, width)}\n`,
    ...sections.filter(([, rows]) => rows.length > 0).map(([title, rows]) => `${title}:\n${rowsOf(rows, width, column)}\n`),
    ...notes.map(({ title, lines }) => `${section(title, lines)}\n`),
    examples.length > 0 ? section(examples.length > 1 ? 'Examples' : 'Example', examples) : '',
  ].join('')
}

export function widthFor({ stdout }: Io): number {
  return stdout.isTerminal ? stdout.columns : 100
}

function optionRow({ flags, description, default: text }: OptionDefinition): Row {
  return { term: flags, meaning: text === undefined ? description : `${description} (default: "${text}")` }
}

function commandRow({ name, options, arguments: taken = [], summary, description }: CommandDefinition): Row {
  const words = [name, ...(options ? ['[options]'] : []), ...taken.map((argument) => argument.name)]
  return { term: words.join(' '), meaning: summary ?? description }
}

export type Row = Record<'term' | 'meaning', string>

/** Rows whose meanings begin at the same column, and stay after it; below a term that leaves no room beside it. */
export function rowsOf(rows: readonly Row[], width: number, column = columnFor(rows, width)): string {
  const indent = `\n${' '.repeat(column)}`
  const beside = (term: string) => (term.length + 4 <= column ? `  ${term}`.padEnd(column) : `  ${term}${indent}`)
  return rows.map(({ term, meaning }) => `${beside(term)}${wrap(meaning, width - column).join(indent)}\n`).join('')
}

/** Where the meanings begin that stand beside the longest of the terms, but in the left half. */
function columnFor(rows: readonly Row[], width: number): number {
  return Math.max(4, ...rows.map(({ term }) => term.length + 4).filter((column) => column <= width / 2))
}

export function section(title: string, lines: readonly string[]): string {
  return `${title}:\n${lines.map((line) => `  ${line}\n`).join('')}`
}

export function paragraph(text: string, width: number): string {
  return `${wrap(text, width).join('\n')}\n`
}
