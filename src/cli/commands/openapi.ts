import { writeStdout } from '../../output/output.js'
import type { PlantsCommand } from '../command.js'

export function define(command: PlantsCommand): void {
  command
    .description(
      'Print the OpenAPI description of the HTTP API. A service offers it at /openapi.json.',
    )
    .addExamples('plants openapi > openapi.json')
    .handler(async (_options, io) => {
      const { formatOpenApi } = await import('../../server/routes.js')
      await writeStdout(io, `${formatOpenApi('')}\n`)
    })
}
