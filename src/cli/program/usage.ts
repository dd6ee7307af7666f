import type { Command, CommanderError } from 'commander'
import { malformed, type PlantsError, shellWord } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { pathTo } from '../commands/index.js'

/** Converts an error of commander. The value of an unknown option is left out, because it may be a secret. */
export async function usageError(error: CommanderError, argv: string[], program: Command): Promise<PlantsError> {
  const command = parsedCommand(program)
  const typed = typedCommand(argv, program)
  const name = pathOf(typed).join(' ')
  const invalid = (message: string, hint = seeHelp(name)) => malformed(message, hint, error)
  switch (error.code) {
    case 'commander.unknownOption':
      return invalid(...(await explainUnknownOption(unknownOption(argv, command), argv, typed, program)))
    case 'commander.unknownCommand':
      return unknownCommand(command.args[0] ?? '', pathOf(command), command.args.slice(1))
    case 'commander.optionMissingArgument': // only the last option can lack its value
      return invalid(`${nameOf(argv.at(-1))} needs a value`)
    case 'commander.missingArgument': {
      const missing = command.registeredArguments[command.args.length]?.name() ?? 'argument'
      return invalid(`${name} needs ${/^[aeiou]/.test(missing) ? 'an' : 'a'} ${missing}`)
    }
    case 'commander.excessArguments': {
      const count = command.registeredArguments.length
      const takes = ['no arguments', '1 argument'][count] ?? `${count} arguments`
      return invalid(`${name} takes ${takes}, but got ${command.args.length}`, await hintForExcessArgument(name, argv, command))
    }
    case 'commander.conflictingOption':
      return invalid(conflictIn(command).join(' cannot be used with '), 'Leave out one of them')
    default:
      return invalid(error.message)
  }
}

function conflictIn(command: Command): string[] {
  const given = command.options.filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
  const definitions = pathTo(pathOf(command))?.at(-1)?.options ?? []
  for (const { long, flags } of given) {
    const { conflicts } = definitions.find((definition) => definition.flags === flags) ?? {}
    const other = given.find((option) => conflicts?.includes(option.attributeName()))
    if (long && other?.long) return [long, other.long]
  }
  return []
}

/**
 * @param path the words before the unknown one
 * @param next those after it
 */
export async function unknownCommand(word: string, path: readonly string[], next?: readonly string[]): Promise<PlantsError> {
  const { didYouMean } = await import('./suggestions.js')
  const { commands = [], topics = [] } = pathTo(path)?.at(-1) ?? {}
  const known = [...commands.map(({ name }) => name), ...(commands.length > 0 ? ['help'] : [])]
  const guess = didYouMean(word, path.join(' '), [...known, ...topics.map(({ name }) => name)], next)
  const hint = topics.reduce((text, { name }) => text?.replace(`mean ${name}?`, `mean: plants help ${name}`), guess)
  return malformed(`Unknown command ${nameOf(word)}`, hint ?? seeHelp(path.join(' ')))
}

/** The hint for an excess argument that was probably meant as the value of an option. */
async function hintForExcessArgument(name: string, argv: string[], command: Command): Promise<string | undefined> {
  const option = (await import('./suggestions.js')).optionForArgument[name]
  if (option === undefined || argv.includes('--')) return undefined
  const extra = command.args.slice(command.registeredArguments.length)
  if (extra.length === 1 && extra[0] === 'help') return `For its help: plants help ${name}`
  const given: unknown = command.opts()[option.slice(2)]
  if (given !== undefined) return `For a value with spaces: ${option} ${shellWord([given, ...extra].join(' '))}`
  if (extra.some((word) => argv.indexOf(word) !== argv.lastIndexOf(word))) return undefined // one may be the value of an option
  const words = [...argv]
  for (const word of extra) words.splice(words.lastIndexOf(word), 1)
  return `Did you mean: plants ${[...words, option, extra.join(' ')].map(shellWord).join(' ')}`
}

/** The first option that neither the command nor its parents have. */
function unknownOption(argv: string[], command: Command): string {
  const path: Command[] = []
  for (let above: Command | null = command; above; above = above.parent) path.unshift(above)
  return path.reduce((rest, above) => above.parseOptions(rest).unknown, argv)[0] ?? ''
}

async function explainUnknownOption(
  text: string,
  argv: string[],
  typed: Command,
  program: Command,
): Promise<[message: string, hint?: string]> {
  const flag = nameOf(text)
  const hasFlag = ({ options }: Command) => options.some((option) => option.long === flag)
  if (text.includes('=') && (hasFlag(program) || hasFlag(typed))) return [`${flag} takes no value`]
  if (flag === '--token' || flag === '--password') {
    const [noun, variable] = flag === '--token' ? ['token', 'PLANTS_TOKEN'] : ['password', 'PGPASSWORD']
    const message = `A ${noun} is not accepted on the command line, where other users can see it`
    return [message, `Set ${variable}, or save it with: plants auth login`]
  }
  const isBefore = typed !== program && argv.indexOf(text) < argv.lastIndexOf(typed.name())
  if (isBefore && hasFlag(typed))
    return [`Unknown option ${flag} before the command`, `Write it after the command: plants ${pathOf(typed).join(' ')} ${flag}`]
  const words = idAsArgument(text, argv, typed)
  if (words) return [`Unknown option ${flag}`, `Did you mean: plants ${words.map(shellWord).join(' ')}`]
  const known = [typed, program].flatMap(({ options }) => options.flatMap(({ long }) => long ?? []))
  const { didYouMean } = await import('./suggestions.js')
  const [value = text.slice(flag.length)] = text === flag ? argv.slice(argv.indexOf(text) + 1) : []
  const guess = didYouMean(flag, pathOf(typed).join(' '), ['--help', ...known], value === '' ? [] : [value])
  return guess === undefined ? [`Unknown option ${flag}`] : [`Unknown option ${flag}`, guess]
}

/** The command line with the id as the argument that it is, where it was given as an option and no other option is unknown. */
function idAsArgument(text: string, argv: string[], command: Command): string[] | undefined {
  const option = /^(--id(?==|$)|-id?)=?/
  if (!option.test(text) || !/^ids?$/.test(command.registeredArguments[0]?.name() ?? '')) return undefined
  const words = argv.flatMap((word) => (word === text ? text.replace(option, '') || [] : word))
  return unknownOption(words, command) === '' ? words : undefined
}

/** The command that was meant, also where commander stops before it. */
export function typedCommand(argv: string[], program: Command): Command {
  return argv.reduce((found, word) => childOf(found, word) ?? found, program)
}

export function parsedCommand(command: Command): Command {
  const child = childOf(command, command.args[0] ?? '')
  return child ? parsedCommand(child) : command
}

function childOf(parent: Command, word: string): Command | undefined {
  return parent.commands.find((child) => child.name() === word || child.aliases().includes(word))
}

export function pathOf(command: Command): string[] {
  return command.parent === null ? [] : [...pathOf(command.parent), command.name()]
}

function seeHelp(path: string): string {
  return `See: plants ${path && `${path} `}--help`
}

/** An option without its value, or a word; a blank word is in quotes. */
function nameOf(text = ''): string {
  if (text.startsWith('--')) return text.replace(/[= ].*/s, '')
  if (text.startsWith('-')) return text.slice(0, 2)
  return text.trim() === '' ? JSON.stringify(text) : shorten(text)
}
