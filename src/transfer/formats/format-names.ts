/** The formats that plants are imported from and exported to. */
export const formatNames = ['ndjson', 'json', 'csv', 'tsv'] as const
export type FormatName = (typeof formatNames)[number]
