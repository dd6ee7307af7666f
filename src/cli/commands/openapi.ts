import { parseChoice } from '../../config/option-values.js'
import { writeStdout } from '../../output/output.js'
import type { PlantsCommand } from '../command.js'
import type { GlobalOptions } from '../global-options.js'

export function define(command: PlantsCommand): void {
  command
    .description(
      'Print the OpenAPI description of the HTTP API. A service returns it at /openapi.json.',
    )
    .addExamples('plants openapi > openapi.json')
    .handler(async ({ output }: GlobalOptions, io) => {
      if (output !== undefined) parseChoice('--output', output, ['json'], 'Leave it out')
      const { openApiJson } = await import('../../server/routes.js')
      await writeStdout(io, `${openApiJson}\n`)
    })
}
