import { commonFormats, parseOutput } from '../../config/option-values.js'
import type { PlantsCommand } from '../command.js'
import { isNamed } from '../command-names.js'
import type { GlobalOptions } from '../global-options.js'

export function define(command: PlantsCommand): void {
  command
    .description('Show the help of a command.')
    .argument('[command...]', 'name of the command, such as list or stores add')
    .addExamples('plants help stores add', 'plants help --output json')
    .handler(({ output }: GlobalOptions, _io, argv: string[]) => {
      if (output !== undefined) parseOutput('--output', output, commonFormats)
      return help(command, argv)
    })
}

async function help(command: PlantsCommand, argv: readonly string[]): Promise<void> {
  // Commander does not know that `createCommand` makes every command of the program.
  let describedCommand = command.parent as PlantsCommand
  for (const name of argv) {
    const subcommand = describedCommand.commands.find((candidate) => isNamed(candidate, name))
    if (!subcommand) {
      const { createUnknownWordError } = await import('../usage-errors.js')
      throw createUnknownWordError('command', name, describedCommand)
    }
    describedCommand = subcommand as PlantsCommand
  }
  describedCommand.outputHelp()
}
