/**
 * Bills of materials in CycloneDX 1.6, which scanners read. `npm sbom` cannot write them: it knows
 * what is installed, which is less or more than what is bundled.
 *
 * @typedef {{ type: string, 'bom-ref': string, name: string, version: string, purl: string,
 *   licenses: { expression: string }[] }} Component
 */

import packageJson from '../../package.json' with { type: 'json' }

export const sbomName = 'sbom.cdx.json'

const application = { ...describePackage(packageJson), type: 'application' }

/**
 * Describes a package of npm. A licence alone is also an expression of SPDX.
 *
 * @returns {Component}
 */
export function describePackage({ name, version, license }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const licenses = [{ expression: license }]
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses }
}

/**
 * Formats a bill of materials. It has no time and no serial number, so that the same sources give
 * the same bytes. Every component counts as a dependency of the program.
 *
 * @param {Component[]} components the same version of a package may be there twice
 */
export function formatSbom(components) {
  const byRef = new Map(components.map((component) => [component['bom-ref'], component]))
  const refs = [...byRef.keys()].toSorted()
  const sbom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: application },
    components: refs.map((ref) => byRef.get(ref)),
    dependencies: [{ ref: application['bom-ref'], dependsOn: refs }],
  }
  return `${JSON.stringify(sbom)}\n`
}
