import { Command } from 'commander'
import { type PlantsError, usageError } from '../platform/errors.js'
import { passwordFile } from '../stores/common/address.js'
import type { RejectedLine } from './command.js'
import {
  commandHint,
  mayHaveSecret,
  missingHint,
  nameOf,
  optionHint,
  strayHint,
} from './guesses.js'

/** With what may have been meant. Help, and the version, that were asked for in an unusual way are shown. */
export function rejectedLineError({ command, code, message }: RejectedLine): PlantsError {
  const { args } = command
  const taken = command.registeredArguments.length
  if (code === 'commander.unknownOption') {
    const { option, value } = unknownOption(command)
    if (command.parent && (option === '--version' || option === '-V'))
      rootOf(command).parse(['--version'], { from: 'user' })
    return option === '--help' ? command.help() : optionError(command, option, value)
  }
  if (code === 'commander.unknownCommand') {
    const words = commandWords(args)
    // Which may be a token, or have a password.
    const isHidden = nameOf(command) === 'auth' || mayHaveSecret(words[0] ?? '')
    const what = isHidden ? 'Unknown command' : `Unknown command '${words[0] ?? args[0]}'`
    return usageError(what, commandHint(command, words) ?? helpOf(command))
  }
  if (code === 'commander.excessArguments') {
    if (command.isHelpWord()) command.help()
    const count = taken === 0 ? 'no arguments' : taken === 1 ? 'one argument' : `${taken} arguments`
    const what = `${nameOf(command)} takes ${count}, but got ${args.length}`
    return usageError(what, strayHint(command, args.slice(taken), command.line) ?? usageOf(command))
  }
  const sentence = message.replace('error: ', '')
  const what = sentence.charAt(0).toUpperCase() + sentence.slice(1)
  const isMissing = code === 'commander.missingArgument'
  return usageError(what, isMissing ? (missingHint(command) ?? usageOf(command)) : helpOf(command))
}

function rootOf(command: Command): Command {
  return command.parent ? rootOf(command.parent) : command
}

/** The first one, and its value, which may be a secret. Commander leaves in `args` what it has not used. */
function unknownOption({ args }: Command): { option: string; value: string | undefined } {
  const [text = '', next] = new Command().parseOptions([...args]).unknown
  const { option = '', joined = '' } =
    /^(?<option>--[^=:\s]*|-.?)(?<joined>.*)$/su.exec(text)?.groups ?? {}
  return { option, value: joined === '' ? next : joined.replace(/^[=:\s]/, '') }
}

function optionError(command: Command, option: string, value: string | undefined): PlantsError {
  if (option === '--token' || option === '--password') {
    const what = `A ${option.slice(2)} is not accepted on the command line, where other users can see it`
    return usageError(what, inPlaceOf[option])
  }
  if (command.options.some(({ long }) => long === option))
    return usageError(`${option} takes no value`, 'Leave it out')
  return usageError(
    `Unknown option ${option}`,
    optionHint(command, option, value) ?? helpOf(command),
  )
}

/** Without the first one of `stores help add`. */
function commandWords(args: readonly string[]): readonly string[] {
  return argumentsOf(args[0] === 'help' ? args.slice(1) : args)
}

/** Up to the first option, because the value of an unknown one may be a secret. */
function argumentsOf(args: readonly string[]): readonly string[] {
  const end = args.findIndex((word) => word.startsWith('-'))
  return end < 0 ? args : args.slice(0, end)
}

function usageOf(command: Command): string {
  return `Usage: plants ${nameOf(command)} ${command.usage()}. ${helpOf(command)}`
}

function helpOf(command: Command): string {
  return `See: plants ${`${nameOf(command)} --help`.trim()}`
}

const inPlaceOf = {
  '--token': 'Set PLANTS_TOKEN, or save one with: plants auth login --store ADDRESS',
  '--password': `Set PGPASSWORD, or write it to ${passwordFile}`,
}
