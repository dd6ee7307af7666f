import { settingNames, settingOf } from '../../config/setting-table.js'
import { type ExitCode, errorKinds } from '../../platform/errors.js'
import { isNamed, type PlantsCommand } from '../command.js'

export const topics: Readonly<Record<string, (program: PlantsCommand) => string>> = {
  options: optionsPage,
  'exit-codes': exitCodesPage,
}

export function define(command: PlantsCommand): void {
  command
    .description(`Show the help of a command, or of a topic: ${Object.keys(topics).join(', ')}.`)
    .argument('[words...]', 'the name of a command or of a topic')
    .addExamples('plants help create', 'plants help stores add', 'plants help exit-codes')
    .handler((_options, _io, words: string[]) => help(command, words))
}

async function help(command: PlantsCommand, words: readonly string[]): Promise<void> {
  const [topic = ''] = words
  let shown = command.parent as PlantsCommand // as it is a command of the program
  const page = Object.hasOwn(topics, topic) ? topics[topic]?.(shown) : undefined
  if (page !== undefined) return shown.configureOutput().writeOut?.(page)
  for (const word of words) {
    const below = shown.commands.find((each) => isNamed(each, word))
    if (!below) throw (await import('../usage-errors.js')).unknownCommandError(shown, word)
    shown = below as PlantsCommand // as each of ours is
  }
  shown.outputHelp()
}

function optionsPage(program: PlantsCommand): string {
  const variables = new Map(
    settingNames.map((name) => [settingOf(name).flags, settingOf(name).variable]),
  )
  const items = program.options.map(({ flags, short, description }): Item => {
    const variable = variables.get(flags)
    const term = short === undefined ? `    ${flags}` : flags
    return [term, variable ? `${description}; also ${variable}` : description]
  })
  const pager =
    'the program that shows lists and help on a terminal; by default less, with cat none'
  const title = 'Options of every command, before or after its name:'
  return listOf(title, items) + listOf('\nVariable:', [['PAGER', pager]])
}

const meanings: Record<ExitCode, string> = {
  0: 'success',
  1: 'rejected: the id or the key exists, no plant has the id, or a check failed',
  2: 'wrong usage or invalid input; only what an import read before it was stored',
  3: 'no token, or one that was not accepted or lacks the right',
  4: 'no access to the store; the plant, or the rest of an import, was not stored',
  5: 'unknown: the plant may be stored',
  6: 'an import rejected some records',
  70: 'a bug in plants, or Node.js before 20.19',
  74: 'the output, the settings or a backup could not be written',
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

function exitCodesPage(): string {
  const items = exitCodes().map(([code, errors]): Item => {
    const values = errors.length > 0 ? ` (error ${errors.join(', ')})` : ''
    return [String(code), meanings[code] + values]
  })
  return listOf('Exit codes, and the values of error in JSON:', items)
}

type Item = [term: string, meaning: string]

function listOf(title: string, items: Item[]): string {
  const width = Math.max(...items.map(([term]) => term.length))
  const lines = items.map(([term, meaning]) => `  ${term.padEnd(width)}  ${meaning}\n`)
  return `${title}\n${lines.join('')}`
}
