/*
 * Describes the program for other programs: `plants help --output json`. All of it comes from the
 * objects of commander, so that a new option needs no change here.
 */
import type { Argument, Option } from 'commander'
import { type ErrorKind, errorKinds, getErrorValue, getExitCode } from '../../errors.js'
import type { PlantsCommand } from '../command.js'
import { getCommandPath } from '../command-names.js'

const errors =
  'With --output json, an error is one line of JSON on stderr: error, message, hint, kind, retryable.'

const exitCodes = {
  0: 'done',
  1: 'rejected by the store, or a check found a problem',
  2: 'wrong usage or invalid input',
  3: 'no token, or a token that is rejected',
  4: 'nothing was stored',
  5: 'outcome unknown: the change may have been made',
  6: 'an import rejected some records',
  70: 'a bug in plants',
  74: 'the output could not be written',
  130: 'interrupted',
  143: 'terminated',
}

/** Describes the program with all of its commands, exit codes and kinds of errors. */
export function describeProgram(program: PlantsCommand): object {
  const kinds = (Object.keys(errorKinds) as ErrorKind[]).map((kind) => ({
    kind,
    error: getErrorValue(kind),
    exitCode: getExitCode(kind),
    retryable: 'isRetryable' in errorKinds[kind],
  }))
  return { ...describeCommand(program), errors, exitCodes, errorKinds: kinds }
}

export function describeCommand(command: PlantsCommand): object {
  const help = command.createHelp()
  const subcommands = help.visibleCommands(command) as PlantsCommand[]
  return {
    name: command.name(),
    aliases: command.aliases(),
    usage: `plants ${`${getCommandPath(command)} ${command.usage()}`.trim()}`,
    description: command.description() || command.summary(),
    arguments: command.registeredArguments.map(describeArgument),
    options: help.visibleOptions(command).map(describeOption),
    examples: command.examples,
    commands: subcommands.map(describeCommand),
  }
}

function describeArgument(argument: Argument): object {
  const { description, required, variadic, argChoices } = argument
  return { name: argument.name(), description, required, variadic, choices: argChoices }
}

function describeOption({ flags, long, description, argChoices, ...option }: Option): object {
  return {
    name: long,
    flags,
    description,
    takesValue: option.required,
    choices: argChoices,
    default: option.defaultValueDescription ?? option.defaultValue,
  }
}
