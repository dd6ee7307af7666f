import { version } from '../../../package.json'
import { writeStdout } from '../../output/output.js'
import type { PlantsCommand } from '../command.js'

export function define(command: PlantsCommand): void {
  command
    .description('Show the version. For the versions of the runtime and SQLite, use plants doctor.')
    .addExamples('plants version')
    .handler((_options, io) => writeStdout(io, `${version}\n`))
}
