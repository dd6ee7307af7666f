import { settingNames, settingOf } from '../../config/setting-table.js'
import { writeAnswer } from '../../output/output.js'
import { type ExitCode, errorKinds } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { type GlobalOptions, isNamed, type PlantsCommand } from '../command.js'
import { paged } from '../pager.js'

/** Pages about what no single command has. */
export const topics: Readonly<Record<string, (command: PlantsCommand) => string>> = {
  options: optionsPage,
  'exit-codes': exitCodesPage,
}

export function defineHelp(command: PlantsCommand, io: Io): void {
  command
    .description(`Show the help of a command, or of a topic: ${Object.keys(topics).join(', ')}.`)
    .argument('[words...]', 'the name of a command or of a topic')
    .addExamples('plants help create', 'plants help stores add', 'plants help exit-codes')
    .handler((options: GlobalOptions, words: string[]) => help(command, words, options, io))
}

async function help(
  command: PlantsCommand,
  words: readonly string[],
  options: GlobalOptions,
  io: Io,
): Promise<void> {
  const [topic = ''] = words
  const page = Object.hasOwn(topics, topic) ? topics[topic]?.(command) : undefined
  if (page !== undefined) return paged(options, io, (shown) => writeAnswer(shown, page))
  let shown = command.parent ?? command
  for (const word of words) {
    const below = shown.commands.find((each) => isNamed(each, word))
    if (!below) {
      const { unknownCommandError } = await import('../usage-errors.js')
      throw unknownCommandError(shown, word)
    }
    shown = below
  }
  shown.outputHelp()
}

function optionsPage(command: PlantsCommand): string {
  const variables = new Map(
    settingNames.map((name) => [settingOf(name).flags, settingOf(name).variable]),
  )
  const options = (command.parent ?? command).options.map(({ flags, short, description }): Item => {
    const variable = variables.get(flags)
    return [
      short === undefined ? `    ${flags}` : flags,
      variable ? `${description}; also ${variable}` : description,
    ]
  })
  const pager: Item = [
    'PAGER',
    'the program that shows lists and help on a terminal; by default less, with cat none',
  ]
  const title = 'Options of every command, before or after its name:'
  return `${list(title, options, command)}\n${list('Variable:', [pager], command)}`
}

const meanings: Record<ExitCode, string> = {
  0: 'success; also if the reader closed the pipe, and after plants serve drained',
  1: 'the store rejected the request: the id or the idempotency key exists, no plant has the id, a constraint that somebody added forbids it, or a service has another reason; a setting is not set; plants doctor found a problem',
  2: 'incorrect usage or invalid input; nothing was stored, except what an import read before it',
  3: 'no token, or a token that was not accepted or does not have the required right',
  4: 'the store could not be opened, reached, read or written, or was busy for too long: the plant, or the rest of an import, was not stored',
  5: 'outcome unknown: the disk failed during a commit, or a service gave no usable response; the plant may be stored',
  6: 'an import rejected some records; without --atomic, the others were imported',
  70: 'internal error: a bug in plants; or Node.js is older than 20.19',
  74: 'the output, the settings or a backup could not be written, for example because the disk is full',
  130: 'interrupted by Ctrl-C (SIGINT), or a confirmation was declined',
  143: 'terminated (SIGTERM, or SIGHUP from a terminal that closes)',
}

/** In ascending order, each with the `error` values that cause it. */
export function exitCodes(): [code: ExitCode, errors: number[]][] {
  const all = Object.values(errorKinds)
  const codes = [0 as const, ...new Set(all.map(({ exitCode }) => exitCode))]
  return codes
    .toSorted((one, other) => one - other)
    .map((code) => {
      const errors = all.filter(({ exitCode }) => exitCode === code).map(({ error }) => error)
      return [code, [...new Set<number>(errors)].toSorted((one, other) => one - other)]
    })
}

function exitCodesPage(command: PlantsCommand): string {
  const items = exitCodes().map(([code, errors]): Item => {
    const values = errors.length > 0 ? ` (error ${errors.join(', ')})` : ''
    return [String(code), `${meanings[code]}${values}`]
  })
  return list('Exit codes, and the values of error in JSON:', items, command)
}

type Item = [term: string, meaning: string]

/** As commander lays out options. */
function list(title: string, items: Item[], command: PlantsCommand): string {
  const help = command.createHelp()
  help.prepareContext({ helpWidth: command.configureOutput().getOutHelpWidth?.() ?? 80 })
  const termWidth = Math.max(...items.map(([term]) => term.length))
  const lines = items.map(([term, meaning]) => help.formatItem(term, termWidth, meaning, help))
  return `${title}\n${lines.join('\n')}\n`
}
