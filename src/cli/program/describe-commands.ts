/*
 * Describes the program for other programs: `plants help --output json`. Commands and options come
 * from the objects of commander, so that a new option needs no change here.
 */
import type { Argument, Option } from 'commander'
import { getSetting, settingNames } from '../../config/setting-table.js'
import { type ErrorKind, errorKinds } from '../../errors.js'
import type { PlantsCommand } from '../command.js'
import { getCommandPath } from '../command-names.js'

const errors =
  'With --output json, an error is one line of JSON on stderr: error, message, hint, kind, retryable.'

const results =
  'With --output json, one plant is {id, name, tag?}, and several are an array. A command with another result describes it.'

/** The JSON that commands read, by their paths. A key with a question mark may be missing. */
const inputs: Readonly<Record<string, string>> = {
  create: '{id, name, tag?}; with --id next {name, tag?}',
  import:
    'an array of {id, name, tag?}, or one such object on each line; with --by-name without id, with --if-exists update without name',
}

/** The JSON that commands print, if they print something else than plants. */
const printedResults: Readonly<Record<string, string>> = {
  create: '{name, tag?}; with --id next {id, name, tag?}',
  count: 'a number; with --by tag [{tag, count}, …, {count}], where the last has no tag',
  import:
    '{dryRun?, created, updated, skipped, rejected, reasons?, unknown, deleted?, missing?, rejects?, undo?}: numbers of records; reasons has those that were rejected by their error, deleted and missing are plants that the list lacks, rejects is the path of the file, and undo is the command that takes the import back; with --dry-run and ndjson, before it {change, id, before?, after?} for each plant',
  export: '{file, plants, bytes}; to stdout, the plants',
  backup: '{file, plants, bytes}',
}

const variables = {
  ...Object.fromEntries(
    settingNames.flatMap((name) => {
      const { variable } = getSetting(name)
      return variable === undefined ? [] : [[variable, `as --${name}`]]
    }),
  ),
  PLANTS_TOKEN: 'the token for a service, without which nothing is sent',
  PLANTS_SERVE_TOKEN: 'the only token that plants serve accepts',
  'PGHOST, PGTARGETSESSIONATTRS': 'the address of a database, as for psql, and others like them',
  PLANTS_DATA_DIR: 'the directory of the store local',
  PLANTS_CONFIG_DIR: 'the directory of the settings',
  'HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY': 'the proxies of a client',
  'SSL_CERT_FILE, SSL_CERT_DIR, NODE_EXTRA_CA_CERTS': 'the trusted certificates',
  PAGER: 'the pager',
  LESS: 'the options of the pager less',
  'PLANTS_NO_INPUT, CI': 'turn off questions and the pager, as --no-input does',
  'NO_COLOR, FORCE_COLOR': 'turns off colors, as --no-color does; forces them',
  NODE_DISABLE_COMPILE_CACHE: 'turns off the compile cache',
}

const exitCodes = {
  0: 'done',
  1: 'rejected by the store, or a check found a problem',
  2: 'wrong usage or invalid input',
  3: 'no token, or a token that is rejected',
  4: 'the store could not be used: the last change was not stored, and the summary of an import says what was stored before',
  5: 'outcome unknown: the change may have been made',
  6: 'an import rejected some records',
  70: 'a bug in plants',
  74: 'the output could not be written',
  130: 'interrupted',
  143: 'terminated',
}

/** Describes the program with all of its commands, variables, exit codes and kinds of errors. */
export function describeProgram(program: PlantsCommand): object {
  const kinds = (Object.keys(errorKinds) as ErrorKind[]).map((kind) => ({
    kind,
    error: errorKinds[kind].error,
    exitCode: errorKinds[kind].exitCode,
    retryable: 'isRetryable' in errorKinds[kind],
  }))
  return { ...describeCommand(program), results, variables, errors, exitCodes, errorKinds: kinds }
}

export function describeCommand(command: PlantsCommand): object {
  const help = command.createHelp()
  const path = getCommandPath(command)
  return {
    name: command.name(),
    aliases: command.aliases(),
    usage: `plants ${`${path} ${command.usage()}`.trim()}`,
    summary: command.summary() || undefined,
    description: command.description() || command.summary(),
    arguments: command.registeredArguments.map(describeArgument),
    options: help.visibleOptions(command).map(describeOption),
    input: inputs[path],
    result: printedResults[path],
    examples: command.examples,
    commands: (command.commands as readonly PlantsCommand[]).map(describeCommand),
  }
}

function describeArgument(argument: Argument): object {
  const { description, required, variadic, argChoices } = argument
  return { name: argument.name(), description, required, variadic, choices: argChoices }
}

function describeOption(option: Option): object {
  return {
    name: option.long,
    flags: option.flags,
    description: option.description,
    takesValue: option.required,
    choices: option.argChoices,
    default: option.defaultValueDescription ?? option.defaultValue,
  }
}
