/** What a run of the built program loads. */
export interface Loads {
  /** the names of the chunks, without the hash of their content, in order */
  chunks: string[]
  /** the npm packages that are in them, in whole or in part, and those that are loaded by their files */
  packages: string[]
  /** Node's own modules, which a program can import */
  modules: string[]
}

/**
 * Tells what is in the chunks of dist.
 *
 * @returns what reads the record of a process
 * @throws {Error} when dist is not what the sources make
 */
export function loadsReader(): Promise<(record: string) => Loads>

/** What Node needs to be told to keep a record: arguments for it, and variables. */
export function recordTo(file: string): { args: string[]; env: Record<string, string> }
