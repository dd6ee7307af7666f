import { version } from '../../../package.json'
import { commonFormats, isJson, parseOutput } from '../../config/option-values.js'
import { writeStdout } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import type { PlantsCommand } from '../command.js'
import type { GlobalOptions } from '../global-options.js'

export function define(command: PlantsCommand): void {
  command
    .description('Show the version. For the versions of the runtime and SQLite, use plants doctor.')
    .addExamples('plants version')
    .handler(({ output }: GlobalOptions, io) => {
      const format = output === undefined ? 'text' : parseOutput('--output', output, commonFormats)
      return writeStdout(io, `${isJson(format) ? toJson({ version }) : version}\n`)
    })
}
