import type { PlantsCommand } from '../command.js'
import { isNamed } from '../command-names.js'

export function define(command: PlantsCommand): void {
  command
    .description('Show the help of a command.')
    .argument('[command...]', 'name of the command, such as list or stores add')
    .addExamples('plants help stores add')
    .handler((_options, _io, argv: string[]) => help(command, argv))
}

async function help(command: PlantsCommand, argv: readonly string[]): Promise<void> {
  let shown = command.parent as PlantsCommand // every parent is a PlantsCommand
  for (const word of argv) {
    const below = shown.commands.find((each) => isNamed(each, word))
    if (!below) throw (await import('../usage-errors.js')).createUnknownCommandError(shown, word)
    shown = below as PlantsCommand // createCommand makes no other
  }
  shown.outputHelp()
}
