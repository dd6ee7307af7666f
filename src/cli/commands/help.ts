import { settingNames, settingOf } from '../../config/setting-table.js'
import { writeAnswer } from '../../output/output.js'
import { type ExitCode, errorKinds, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import {
  type GlobalOptions,
  isNamed,
  loadCommand,
  OtherFlags,
  type PlantsCommand,
} from '../command.js'
import { paged } from '../pager.js'

interface Topic {
  summary: string
  page(width: number, command: PlantsCommand): string
}

export const topics: Readonly<Record<string, Topic>> = {
  options: { summary: 'the options of every command, and their variables', page: optionsPage },
  'exit-codes': { summary: 'exit codes and what they mean', page: exitCodesPage },
  topics: {
    summary: 'this list',
    page: (width, command) =>
      list(
        'Topics',
        Object.entries(topics).map(([name, { summary }]) => [name, summary]),
        width,
        command,
      ),
  },
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
  words: string[],
  options: GlobalOptions,
  io: Io,
): Promise<void> {
  const [word = ''] = words
  const topic = words.length === 1 && Object.hasOwn(topics, word) ? topics[word] : undefined
  if (topic) {
    const page = topic.page(command.configureOutput().getOutHelpWidth?.() ?? 80, command)
    return paged(options, io, (shown) => writeAnswer(shown, page))
  }
  let shown = command.parent ?? command
  for (const name of words) {
    const below = shown.commands.find((each) => isNamed(each, name))
    if (!below) {
      if (shown.commands.length > 0) await shown.parseAsync([name], { from: 'user' }) // its error has a suggestion
      throw usageError(`${shown.name()} has no commands`, 'See: plants help topics') // the word may be a token
    }
    await loadCommand(below, io)
    shown = below
  }
  shown.outputHelp()
}

function optionsPage(width: number, command: PlantsCommand): string {
  const variables = new Map(
    settingNames.map((name) => [settingOf(name).flags, settingOf(name).variable]),
  )
  const all = (command.parent ?? command).options.filter(
    (option) => !(option instanceof OtherFlags),
  )
  const items = all.map(({ flags, short, description }): Item => {
    const variable = variables.get(flags)
    return [
      short === undefined ? `    ${flags}` : flags,
      variable ? `${description}; also ${variable}` : description,
    ]
  })
  const options = list('Options of every command, before or after its name', items, width, command)
  const pager: Item = [
    'PAGER',
    'the program that shows lists and help on a terminal; by default less, with cat none',
  ]
  return `${options}\n${list('Variable', [pager], width, command)}`
}

/** In ascending order, each with the `error` values that cause it. */
export function exitCodes(): [code: ExitCode, errors: number[]][] {
  const all = Object.values(errorKinds)
  const codes = [0 as const, ...new Set(all.map(({ exitCode }) => exitCode))].toSorted(
    (a, b) => a - b,
  )
  return codes.map((code) => {
    const errors = new Set(
      all.filter(({ exitCode }) => exitCode === code).map(({ error }) => error),
    )
    return [code, [...errors].toSorted((a, b) => a - b)]
  })
}

const meanings: Record<ExitCode, string> = {
  0: 'success; also if the reader closed the pipe, and after plants serve drained',
  1: 'the store rejected the request: the id or the idempotency key exists, there is no plant with the id, a constraint that somebody added to the store forbids it, or a service rejected the request for another reason; a setting is not set; plants doctor found a problem',
  2: 'incorrect usage or invalid input; nothing was stored, except what an import read before it',
  3: 'no token, or a token that was not accepted or does not have the required right',
  4: 'the store could not be opened, reached, read or written, or was busy for too long: the plant, or the rest of an import, was not stored',
  5: 'outcome unknown: the disk failed during a commit, or a service gave no usable response; the plant may be stored',
  6: 'an import rejected some records; without --atomic, the others were imported',
  70: 'internal error: a bug in plants; or Node.js is older than 20.19',
  74: 'the operation succeeded, but its output could not be written, for example because the disk of stdout or of an export is full; or the settings or a backup could not be written',
  130: 'interrupted by Ctrl-C (SIGINT), or a confirmation was declined',
  143: 'terminated (SIGTERM)',
}

const otherErrors: Partial<Record<ExitCode, string>> = {
  1: ', or that of the service',
  6: ', or the error of all rejected records, if it is the same',
}

function exitCodesPage(width: number, command: PlantsCommand): string {
  const items = exitCodes().map(([code, errors]): Item => {
    const values = `${errors.join(', ')}${otherErrors[code] ?? ''}`
    return [String(code), `${meanings[code]}${errors.length > 0 ? ` (error ${values})` : ''}`]
  })
  return list('Exit codes, and the values of error in JSON', items, width, command)
}

type Item = [term: string, meaning: string]

function list(title: string, items: Item[], helpWidth: number, command: PlantsCommand): string {
  const help = command.createHelp()
  help.prepareContext({ helpWidth })
  const termWidth = Math.max(...items.map(([term]) => term.length))
  const lines = items.map(([term, meaning]) => help.formatItem(term, termWidth, meaning, help))
  return `${help.boxWrap(`${title}:`, helpWidth)}\n${lines.join('\n')}\n`
}
