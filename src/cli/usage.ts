import type { Command } from 'commander'
import { malformed, type PlantsError } from '../platform/errors.js'

/**
 * An error of commander, whose suggestion becomes the hint. The value of an unknown option is left out, because it may be
 * a secret.
 */
export function usageError(command: Command, message: string, code: string): PlantsError {
  const { sentence = '', suggestion } =
    /^error: (?<sentence>.*?)(?:\n\((?<suggestion>Did you mean .*)\))?$/s.exec(message)?.groups ?? {}
  const option = code === 'commander.unknownOption' ? /^unknown option '(--[^=']*|-.)/.exec(sentence)?.[1] : undefined
  if (option === '--token' || option === '--password') {
    const what = `A ${option.slice(2)} is not accepted on the command line, where other users can see it`
    const hint = option === '--token' ? 'Set PLANTS_TOKEN, or save one with: plants auth login' : inPlaceOfPassword
    return malformed(what, hint)
  }
  if (command.options.some(({ long }) => long === option)) return malformed(`${option} takes no value`, 'Leave it out')
  const text = option === undefined ? sentence.replace(/\.$/, '') : `unknown option ${option}`
  const name = nameOf(command)
  const usage = `Usage: plants ${name} ${command.usage()}`
  const isOfArguments = code === 'commander.missingArgument' || code === 'commander.excessArguments'
  const help = `${isOfArguments ? `${usage}. ` : ''}See: plants ${`${name} --help`.trim()}`
  const isRisky = /\b(remove|delete|revoke|unset|logout)\b/.test(suggestion ?? '')
  return malformed(text.charAt(0).toUpperCase() + text.slice(1), isRisky ? help : (suggestion ?? help))
}

const inPlaceOfPassword = 'Set PGPASSWORD, or write it to ~/.pgpass'

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}`.trim() : ''
}
