import type { Io } from '../platform/io.js'
import type { Values } from '../platform/values.js'
import type { GlobalFlags } from './flags.js'

/** A command as data: the command line, the help and the completion of shells go by it, and none of them needs what it does. */
export interface CommandSpec {
  name: string
  /** for the list of commands, where the description would be too long */
  summary?: string
  description: string
  arguments?: Term[]
  flags?: readonly Flag[]
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
export interface Given<Values = object> {
  args: string[]
  /** its flags and the global ones, by their names in camel case */
  flags(): GlobalFlags & Values
}

/** A command of which the flags are given with their types. */
export function command<const Flags extends readonly Flag[]>(
  spec: Omit<CommandSpec, 'flags' | 'run'> & { flags: Flags; run(given: Given<FlagValues<Flags>>, io: Io): Promise<void> },
): CommandSpec {
  return spec
}

/**
 * The values that commander gives for flags, by their terms: `--id-from <int64>` gives `{ idFrom?: string }`, `--yes` gives
 * `{ yes?: boolean }`, and `--journal <path>` with `--no-journal` gives `{ journal?: string | false }`. One with a preset is there.
 */
export type FlagValues<Flags extends readonly Flag[]> = {
  [One in Flags[number] as One extends { preset: string } ? never : NameOf<One>]?: ValueOf<Flags[number], NameOf<One>>
} & {
  [One in Flags[number] as One extends { preset: string } ? NameOf<One> : never]: string
}

type NameOf<One extends Flag> = LongOf<One> extends `no-${infer Name}` ? CamelCase<Name> : CamelCase<LongOf<One>>
type ValueOf<All extends Flag, Name> = All extends unknown
  ? NameOf<All> extends Name
    ? All['term'] extends `${string} <${string}>`
      ? string
      : LongOf<All> extends `no-${string}`
        ? false
        : boolean
    : never
  : never
/** the name of a flag without its dashes and its value */
type LongOf<One extends Flag> = WithoutValue<
  One['term'] extends `-${string}--${infer Rest}` ? Rest : One['term'] extends `--${infer Rest}` ? Rest : never
>
type WithoutValue<Text extends string> = Text extends `${infer Name} <${string}>` ? Name : Text
type CamelCase<Text extends string> = Text extends `${infer Word}-${infer Rest}` ? `${Word}${Capitalize<CamelCase<Rest>>}` : Text
