import type { Command } from 'commander'

/** Whether a command has this name, or this alias. */
export function isNamed(command: Command, name: string): boolean {
  return command.name() === name || command.aliases().includes(name)
}

/** Returns the words that select a command, such as `stores add`, or "" for the program itself. */
export function getCommandPath(command: Command): string {
  return command.parent ? `${getCommandPath(command.parent)} ${command.name()}`.trim() : ''
}

/** Finds where the options of a line end: at `--`, after which a word is an argument, or at its end. */
export function findEndOfOptions(argv: readonly string[]): number {
  const index = argv.indexOf('--')
  return index === -1 ? argv.length : index
}

/** @param path the words that select a command, or "" for the program itself */
export function formatHelpHint(path: string): string {
  return `See: plants ${`${path} --help`.trim()}`
}
