import type { Command } from 'commander'

/**
 * A command line that commander rejects. `explainCommandLineError` converts it to a `PlantsError`.
 */
export class CommandLineError extends Error {
  readonly command: Command
  readonly code: string

  constructor(command: Command, code: string, message: string) {
    super(message)
    this.command = command
    this.code = code
  }
}
