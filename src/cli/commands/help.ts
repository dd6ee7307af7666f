import { commonFormats, parseOutput } from '../../config/option-values.js'
import { createUsageError } from '../../errors.js'
import { writeStdout } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import type { PlantsCommand } from '../command.js'
import { isNamed } from '../command-names.js'
import type { GlobalOptions } from '../global-options.js'
import { runInPager } from '../pager.js'

export function define(command: PlantsCommand): void {
  command
    .description('Show the help of a command, or a page of the documentation.')
    .argument('[command...]', 'name of a command, such as list or stores add, or a topic')
    .addExamples('plants help stores add', 'plants help importing', 'plants help --output json')
    .handler((options: GlobalOptions, io, words: string[]) =>
      // Commander does not know that `createCommand` makes every command of the program.
      help(command.parent as PlantsCommand, options, io, words),
    )
}

async function help(
  program: PlantsCommand,
  options: GlobalOptions,
  io: Io,
  words: string[],
): Promise<void> {
  const { formatPage, listTopics } = await import('../topics.js')
  const { output } = options
  const page = formatPage(words[0] ?? '', program.configureOutput().getOutHelpWidth?.() ?? 80)
  if (output !== undefined) parseOutput('--output', output, page ? ['text'] : commonFormats)
  if (page && words.length > 1)
    throw createUsageError('help takes one command or page', 'See: plants help')
  if (page) return runInPager(options, io, (pagerIo) => writeStdout(pagerIo, page))
  if (words.length === 0) {
    const helper = program.createHelp()
    const topics = listTopics().map(([topic, title]) =>
      helper.formatItem(topic, helper.padWidth(program, helper), title, helper),
    )
    program.addHelpText('after', ['\nTopics:', ...topics].join('\n'))
  }
  const command = await findCommand(program, words)
  command.outputHelp()
}

async function findCommand(
  program: PlantsCommand,
  words: readonly string[],
): Promise<PlantsCommand> {
  let command = program
  for (const word of words) {
    const subcommand = command.commands.find((candidate) => isNamed(candidate, word))
    if (!subcommand) {
      const { createUnknownCommandError } = await import('../usage-errors.js')
      throw createUnknownCommandError(word, command)
    }
    command = subcommand as PlantsCommand
  }
  return command
}
