import type { GlobalFlags, Values } from '../flags.js'
import type { Io } from '../io.js'

/** A command as data: the command line, the help and the completion of shells go by it, and none of them needs what it does. */
export interface CommandSpec {
  name: string
  /** for the list of commands, where the description would be too long */
  summary?: string
  description: string
  arguments?: Term[]
  flags?: Flag[]
  /** a group has some, and does nothing itself */
  commands?: CommandSpec[]
  /** pages of help besides those of the commands; the program has some */
  topics?: Topic[]
  notes?: Note[]
  /** lines for a shell */
  examples?: string[]
  /** Does it. What that takes is loaded here, and nowhere before. */
  run?(given: Given, io: Io): Promise<void>
}

/** A page that `plants help` shows besides those of the commands. */
export interface Topic {
  name: string
  meaning: string
  /** @param width columns of the place where it is shown */
  page(width: number): Promise<string>
}

/** What else there is to know about a command. The lines stay as they are, since some are for a shell. */
export interface Note {
  title: string
  lines: string[]
}

/** An argument or a flag. */
export interface Term {
  /** as the help shows it: `<id>`, `[files...]`, `-v, --verbose`, `--file <path>` */
  term: string
  meaning: string
  /** what its value can be */
  values?: Values
}

export interface Flag extends Term {
  /** the value by default, which the help shows */
  preset?: string
}

/** What stands behind a command. */
export interface Given {
  args: string[]
  /** its flags and the global ones, by their names in camel case */
  flags<T extends GlobalFlags>(): T
}
