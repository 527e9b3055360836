-- name: match_page
SELECT new_version, at_ms, claimed, is_trimmed
FROM tape_match_page(
       :seen, :epoch, :cursor, :lowest, :matched_ids, :prefixes, :sizes, :positions, :hashes,
       ARRAY(SELECT json_array_elements_text(:reaction_ids::json)), :owner, :most, :lease_ms);

-- name: claim_matches
SELECT tape_claim_matches(
         :now, :lowest, :matched_ids, :prefixes, :sizes, :positions, :hashes,
         ARRAY(SELECT json_array_elements_text(:reaction_ids::json)), :owner, :most, :lease_ms);

-- name: finish
SELECT tape_finish(:owner, :prefixes, :sizes, :positions);

-- name: has_expired
SELECT 1 FROM tape_page_claims WHERE lease_expires_at_ms <= tape_now_ms() LIMIT 1;

-- name: materialize_expired
SELECT tape_materialize_claims(NULL, tape_now_ms());

-- name: materialize_owned
SELECT tape_materialize_claims(o.owner, 9223372036854775807)
FROM json_array_elements_text(:owners::json) AS o(owner) ORDER BY o.owner;

-- name: materialize_all
-- While the match cursor is locked, no matcher writes another claim.
SELECT tape_materialize_claims(NULL, 9223372036854775807) FROM (SELECT 1 FROM tape_match_cursor FOR UPDATE) AS c;
